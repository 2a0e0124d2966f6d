/** One turn of `agent-ops-server.ts`: its steps as events, and what the server keeps of them. */
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import type { Dialect, Step } from './agent-ops-script.ts';

export type Message = { type: string; [field: string]: unknown };
type Part = { type: string; [field: string]: unknown };
export type Stored = {
  id: string;
  role: string;
  content: string;
  parts?: unknown;
  [field: string]: unknown;
};

type Stage = {
  turnId: string;
  dialect: Dialect;
  place: object;
  messages: Stored[];
  tell(event: Message): void;
  misbehave(step: Step): void;
};

/** Takes a turn's steps; nothing stands for the end. */
export function createPlay(stage: Stage): (step: Step | undefined) => void {
  const { turnId, dialect, place, messages, tell } = stage;
  let hasBegun = false;
  let isOver = false;
  const parts: Part[] = [];
  const contentOf = () => parts.map((part) => part.text ?? '').join('');

  function keep(event: Message): void {
    if (!hasBegun) {
      hasBegun = true;
      const kept = { id: turnId, role: 'assistant', parts, ...place };
      // Only when somebody asks: it grows with every delta.
      messages.push(
        Object.defineProperty(kept, 'content', { enumerable: true, get: contentOf }) as Stored,
      );
    }
    const text = event.type === 'chunk' ? event.content : event.delta;
    if (typeof text === 'string') keepText(text);
    else if (event.type === 'message.part.tool-update') keepCall(event);
    else if (event.type === 'message.updated') {
      const { parts: told } = event.data as { parts: Part[] };
      parts.splice(0, parts.length, ...told.map((part) => ({ ...part })));
    } else if (event.type === 'message.finalize') {
      parts.push({ type: 'finish', reason: event.reason });
    }
    isOver ||= parts.at(-1)?.type === 'finish';
  }

  function keepText(text: string): void {
    const last = parts.at(-1);
    if (last?.type === 'text') last.text += text;
    else parts.push({ type: 'text', text });
  }

  function keepCall({ type: _, turnId: __, ...call }: Message): void {
    const known = parts.find(({ callId }) => callId === call.callId);
    if (known) Object.assign(known, call);
    else parts.push({ type: 'tool-call', ...call });
  }

  function emit(event: Message): void {
    tell(event);
    if (event.type !== 'agentStatus' && event.type !== 'question') keep(event);
  }

  function begin(): void {
    if (hasBegun) return;
    const data = { id: turnId, role: 'assistant', content: '', parts: [], ...place };
    emit(
      dialect === 'v2' ? { type: 'message.create', turnId, ...place } : { type: 'message', data },
    );
  }

  function delta(text: string): Message {
    return dialect === 'v2'
      ? { type: 'message.part.text-delta', turnId, delta: text }
      : { type: 'chunk', content: text, messageId: turnId, ...place };
  }

  function update(more: Part[]): Message {
    const said = [...parts, ...more];
    const data = { id: turnId, role: 'assistant', content: contentOf(), parts: said, ...place };
    return { type: 'message.updated', data };
  }

  function finish(reason: string, error?: string): void {
    isOver = true;
    const why = error === undefined ? [] : [{ type: 'error', message: error }];
    if (dialect === 'v2') emit({ type: 'message.finalize', turnId, reason, error });
    else emit(update([...why, { type: 'finish', reason }]));
  }

  function fail(error: string): void {
    if (hasBegun) finish('error', error);
    else tell({ type: 'error', error });
    isOver = true;
  }

  function callTool(call: object): void {
    if (dialect === 'v2') emit({ type: 'message.part.tool-update', turnId, ...call });
    else {
      keepCall({ type: '', ...call });
      emit(update([]));
    }
  }

  return (step) => {
    if (step === undefined) {
      if (isOver) return;
      begin();
      finish('end_turn');
    } else if ('send' in step) emit(step.send as Message);
    else if ('fail' in step) fail(step.fail);
    else if ('begin' in step) begin();
    else if ('say' in step || 'tool' in step || 'ask' in step || 'flood' in step) {
      begin();
      if ('say' in step) emit(delta(step.say));
      else if ('tool' in step) callTool(step.tool);
      else if ('ask' in step) tell({ type: 'question', ...step.ask, ...place });
      else for (let i = 0; i < step.flood; i++) emit(delta(`${i} `));
    } else stage.misbehave(step);
  };
}

export function misbehave(client: { socket: WebSocket; isSilent: boolean }, step: Step): void {
  const { socket } = client;
  const raw = rawOf(socket);
  if ('silence' in step) client.isSilent = true;
  else if ('close' in step) socket.close(step.close);
  else if ('bytes' in step) socket.send('x'.repeat(step.bytes));
  else if ('cut' in step) {
    // The head of a text frame of 100 bytes, and five of them.
    if (step.cut === 'in-a-frame') raw.write(Buffer.from([0x81, 100, ...Buffer.from('{"typ')]));
    setImmediate(() => raw.destroy());
  } else if ('garbage' in step) {
    const { garbage } = step;
    if (garbage === 'text') socket.send('this is {not JSON');
    else if (garbage === 'binary') socket.send(Buffer.from([0, 1, 2, 255]));
    else if (garbage === 'utf8') raw.write(Buffer.from([0x81, 2, 0xc3, 0x28]));
    else for (const shape of SHAPES) socket.send(JSON.stringify(shape));
  }
}

/** The bytes below the frames: `ws` does not offer them, and only they can be wrong. */
export function rawOf(socket: WebSocket): Socket {
  return (socket as unknown as { _socket: Socket })._socket;
}

/** JSON, but not what anybody expects. */
const SHAPES = [
  null,
  7,
  [],
  {},
  { type: 7 },
  { type: 'message' },
  { type: 'message', data: { role: 'assistant' } },
  { type: 'message.updated', data: null },
  { type: 'message.updated', data: { id: 'x', parts: [null, 7, { type: 'finish' }] } },
  { type: 'chunk', content: 7 },
  { type: 'message.create' },
  { type: 'message.finalize', turnId: 7 },
  { type: 'status', data: 7 },
  { type: 'status', data: { promptQueued: 'yes', queuePosition: 'first' } },
  { type: 'question' },
  { type: 'queue.state', data: 7 },
  { type: 'queue.withdrawn' },
  { type: 'init', session: 7, data: 'x' },
  { type: 'nobody-told-us' },
];
