/**
 * A runner as the protocol wants it, step by step in a test's hands: it sends again what was not confirmed, knows what it
 * was given, and works on one turn at a time.
 */
import type { Chunk } from '../src/core/chunks.ts';
import type { TurnOutcome } from '../src/core/outcome.ts';
import type { Translator } from '../src/core/translator.ts';
import type { RunnerCommand } from '../src/sessions/index.ts';
import { createChunkTranslator } from '../src/sources/ai-sdk/translate.ts';
import type { SessionRig, TestSocket } from './session-rig.ts';

type Frame = { type: 'chunks'; turnId: string; seq: number; chunks: Chunk[] };
type Work = {
  turnId: string;
  messageId: string;
  translator: Translator<Chunk>;
  asked: number;
  open: Map<string, Chunk & { data: object }>;
  isStopped: boolean;
};

export type Doing = 'text' | 'question' | 'event' | 'end' | 'fail';

export function createModelRunner(rig: Pick<SessionRig, 'runner'>, runnerId: string) {
  let socket: TestSocket | undefined;
  let received = 0;
  let outbox: Frame[] = [];
  let onTheWay: Frame[] = [];
  const counts = new Map<string, number>();
  const known: string[] = [];
  const next: Work[] = [];
  const begun: string[] = [];
  /** By the ids of messages. */
  const words = new Map<string, string>();
  let turn: Work | undefined;
  let count = 0;
  let isSlow = false;

  function send({ turnId }: Work, chunks: Chunk[]): void {
    if (chunks.length === 0) return;
    const seq = (counts.get(turnId) ?? 0) + 1;
    counts.set(turnId, seq);
    const frame: Frame = { type: 'chunks', turnId, seq, chunks };
    outbox.push(frame);
    if (isSlow) onTheWay.push(frame);
    else socket?.say(frame);
  }

  const push = (work: Work, chunk: Chunk) => send(work, work.translator.push(chunk));

  function begin(): void {
    if (turn) return;
    turn = next.shift();
    if (!turn) return;
    begun.push(turn.turnId);
    push(turn, { type: 'start' });
  }

  function end(outcome: TurnOutcome): void {
    const ended = turn as Work;
    turn = undefined;
    send(ended, ended.translator.end(outcome));
    begin();
  }

  function settle(questionId: string, how: object): void {
    const question = turn?.open.get(questionId);
    if (!turn || !question) return;
    turn.open.delete(questionId);
    push(turn, { ...question, data: { ...question.data, ...how } } as Chunk);
  }

  function obey(command: RunnerCommand): void {
    switch (command.type) {
      case 'prompt': {
        const { turnId, messageId } = command.prompt;
        if (known.includes(turnId)) return;
        known.push(turnId);
        const translator = createChunkTranslator({ messageId, isMessageIdFixed: true });
        const work = { turnId, messageId, translator, asked: 0, isStopped: false };
        next.push({ ...work, open: new Map() });
        begin();
        break;
      }
      case 'stop': {
        const waiting = next.findIndex(({ turnId }) => turnId === command.turnId);
        const [dropped] = waiting < 0 ? [] : next.splice(waiting, 1);
        if (dropped) send(dropped, dropped.translator.end({ status: 'stopped' }));
        if (turn?.turnId === command.turnId) turn.isStopped = true;
        break;
      }
      case 'ack':
        outbox = outbox.filter(({ turnId, seq }) => turnId !== command.turnId || seq > command.seq);
        break;
      case 'answer':
        if (command.turnId === turn?.turnId) {
          settle(command.questionId, { status: 'answered', answer: command.answer });
        }
        break;
      case 'expire':
        if (command.turnId === turn?.turnId) settle(command.questionId, { status: 'expired' });
    }
  }

  function say(): void {
    const work = turn as Work;
    const delta = `${work.messageId}:${++count} `;
    words.set(work.messageId, (words.get(work.messageId) ?? '') + delta);
    push(work, { type: 'text-delta', id: `text-${work.asked}`, delta });
  }

  function ask(): void {
    const work = turn as Work;
    // Counted from one in every turn, as some agents do.
    const questionId = `q${++work.asked}`;
    const expiresAt = Date.now() + 300_000;
    const data = { questionId, text: 'Deploy?', status: 'open', expiresAt };
    const chunk = { type: 'data-question', id: questionId, data } as const;
    work.open.set(questionId, chunk);
    push(work, { type: 'text-end', id: `text-${work.asked - 1}` });
    push(work, chunk);
  }

  return {
    /** The turns it has begun, in order. */
    begun,
    /** What it said in each turn, by the id of the message. */
    words: words as ReadonlyMap<string, string>,
    get isIdle() {
      return !turn && next.length === 0 && outbox.length === 0;
    },
    connect(): void {
      if (socket && !socket.closed) return;
      const opened = rig.runner(runnerId, null);
      if (opened.closed) return;
      socket = opened;
      received = 0;
      onTheWay = [];
      opened.say({ type: 'hello', turnId: turn?.turnId ?? null, known });
      for (const frame of outbox) opened.say(frame);
    },
    /** Its connection is gone, and the session learns it. */
    cut(): void {
      const lost = socket;
      socket = undefined;
      lost?.drop();
    },
    /** Its connection is gone with its session's process. */
    lose(): void {
      socket = undefined;
    },
    /** What it sends stays on the way, until that is over or it connects anew. */
    slow(given: boolean): void {
      isSlow = given;
      if (isSlow) return;
      for (const frame of onTheWay.splice(0)) socket?.say(frame);
    },
    receive(most = Number.POSITIVE_INFINITY): void {
      for (let n = 0; n < most && socket && received < socket.events.length; n++) {
        obey(socket.events[received++] as unknown as RunnerCommand);
      }
    },
    work(doing: Doing): void {
      if (!turn) return;
      if (turn.isStopped) end({ status: 'stopped' });
      else if (turn.open.size > 0) return;
      else if (doing === 'text') say();
      else if (doing === 'question') ask();
      else if (doing === 'event') {
        socket?.say({ type: 'event', event: { type: 'git-state', branch: `b${++count}` } });
      } else if (doing === 'end') end({ status: 'finished' });
      else end({ status: 'failed', message: 'It broke.' });
    },
    finish(): void {
      if (turn) end({ status: 'finished' });
    },
  };
}
