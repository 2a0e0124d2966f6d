/** What an agent does in a turn, played by `agent-ops-server.ts` in either dialect. */
import { readJsonl } from './jsonl.ts';

export type Dialect = 'snapshot' | 'v2';

type Call = {
  callId: string;
  toolName: string;
  status: 'pending' | 'running' | 'completed' | 'error';
  args?: unknown;
  result?: unknown;
  error?: string;
};

export type Step =
  /** Says nothing yet: the turn has only begun. */
  | { begin: true }
  | { say: string }
  | { tool: Call }
  | { ask: { questionId: string; text: string; options?: string[] } }
  /** Ends the turn with an error; before anything was said, without a message. */
  | { fail: string }
  /** An event as it is. */
  | { send: object }
  /** Half of a frame, then nothing; or nothing at all. */
  | { cut: 'in-a-frame' | 'between-frames' }
  /** A frame that is no event. */
  | { garbage: 'text' | 'binary' | 'utf8' | 'shapes' }
  /** That many deltas, as fast as they go. */
  | { flood: number }
  /** One text frame of that many bytes. */
  | { bytes: number }
  /** The connection stays, and says nothing any more. */
  | { silence: true }
  | { close: number };

type ScriptTurn = {
  readonly turnId: string;
  /** Which turn of the server this is, from 1. */
  readonly number: number;
  readonly dialect: Dialect;
  readonly text: string;
  /** Aborts with the turn. */
  readonly signal: AbortSignal;
  answer(questionId: string): Promise<unknown>;
};

export type Script = (turn: ScriptTurn) => Iterable<Step> | AsyncIterable<Step>;

export const say = (...texts: string[]): Script =>
  function* () {
    for (const text of texts) yield { say: text };
  };

/** Says the first, waits, and says the rest. */
export const sayWhen = (gate: Promise<unknown>, first: string, ...rest: string[]): Script =>
  async function* ({ signal }) {
    yield { say: first };
    await Promise.race([gate, aborted(signal)]);
    if (signal.aborted) return;
    for (const text of rest) yield { say: text };
  };

export const steps = (...given: Step[]): Script =>
  function* () {
    yield* given;
  };

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

const FOLDER = new URL('./fixtures/agent-ops-recordings/', import.meta.url);
type Line = { dir: string; msg: Record<string, unknown> & { type: string } };

/** What the server itself says around every turn, and so is not played twice. */
const AROUND = new Set(['init', 'models', 'audit_log', 'user.joined', 'user.left', 'complete']);

function isOfTheTurn({ type, data, status }: Line['msg']): boolean {
  if (AROUND.has(type) || type === 'status' || type === 'toast') return false;
  if (type === 'message') return (data as { role?: string }).role === 'assistant';
  return !(type === 'agentStatus' && status === 'idle');
}

/** A recorded turn, under ids of its own. A question waits for its answer. */
function recording(name: string): Script {
  return async function* ({ turnId, number, dialect, answer }) {
    const side = dialect === 'v2' ? 'runner' : 'client';
    const lines = readJsonl(new URL(`${name}.${side}.jsonl`, FOLDER)) as Line[];
    const from = lines.findIndex(({ msg }) => msg.type === 'prompt');
    const played = lines.slice(from + 1).filter(({ dir, msg }) => {
      return !dir.startsWith('client') && isOfTheTurn(msg);
    });
    const recordedId = JSON.stringify(played).match(
      dialect === 'v2' ? /"turnId":"([^"]+)"/ : /"id":"([^"]+)"/,
    )?.[1];
    for (const { msg } of played) {
      const text = JSON.stringify(msg)
        .replaceAll(recordedId ?? '', turnId)
        .replace(/"((?:callId|questionId)":"[^"]+)"/g, `"$1-${number}"`);
      const event = JSON.parse(text);
      yield { send: event };
      if (event.type === 'question') await answer(event.questionId);
    }
  };
}

/** `[rfc-tool] …` plays that recording; anything else is repeated. */
export function defaultScript(text: string): Script {
  const name = /^\[([\w-]+)\]/.exec(text)?.[1];
  return name ? recording(name) : say('You said ', text);
}
