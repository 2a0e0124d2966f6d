/**
 * A runner as the protocol wants it, step by step in a test's hands: it says again what was not
 * confirmed, knows what it was given, and works on one turn at a time.
 */
import type { SessionRig, TestSocket } from './session-rig.ts';

type Event = { type: string; runnerSeq: number; [field: string]: unknown };
type Command = { type: string; [field: string]: unknown };
type Work = {
  turnId: string;
  messageId: string;
  asked: number;
  open: Set<unknown>;
  isAborted: boolean;
};

export type Doing = 'text' | 'question' | 'event' | 'end' | 'fail';

export function createModelRunner(rig: Pick<SessionRig, 'runner'>, runnerId: string) {
  let socket: TestSocket | undefined;
  let heard = 0;
  let runnerSeq = 0;
  let said = 0;
  let outbox: Event[] = [];
  const known: string[] = [];
  const next: Work[] = [];
  const begun: string[] = [];
  let turn: Work | undefined;
  let isSlow = false;

  function say(event: Command): void {
    const entry = { ...event, runnerSeq: ++runnerSeq };
    outbox.push(entry);
    if (!isSlow) socket?.say(entry);
  }

  function begin(): void {
    if (turn) return;
    turn = next.shift();
    if (!turn) return;
    begun.push(turn.turnId);
    say({ type: 'message.create', turnId: turn.turnId });
  }

  function end(reason: 'end_turn' | 'error' | 'canceled'): void {
    const { turnId, messageId } = turn as Work;
    turn = undefined;
    say({ type: 'message.finalize', turnId, reason });
    say({ type: 'complete', messageId });
    begin();
  }

  function obey(command: Command): void {
    if (command.type === 'prompt') {
      const { turnId, messageId } = command as Command & { turnId: string; messageId: string };
      if (known.includes(turnId)) return;
      known.push(turnId);
      next.push({ turnId, messageId, asked: 0, open: new Set(), isAborted: false });
      begin();
    } else if (command.type === 'abort') {
      const waiting = next.findIndex(({ turnId }) => turnId === command.turnId);
      if (waiting >= 0) next.splice(waiting, 1);
      if (turn && turn.turnId === command.turnId) turn.isAborted = true;
    } else if (command.type === 'ack') {
      outbox = outbox.filter((entry) => entry.runnerSeq > (command.runnerSeq as number));
    } else if (command.type === 'answer') turn?.open.delete(command.questionId);
  }

  return {
    /** The turns it has begun, in order. */
    begun,
    /** The one it works on. */
    get turnId() {
      return turn?.turnId;
    },
    get isIdle() {
      return !turn && next.length === 0;
    },
    connect(): void {
      if (socket) return;
      const opened = rig.runner(runnerId, null);
      if (opened.closed) return;
      socket = opened;
      heard = 0;
      const { lastRunnerSeq } = Object(opened.events[0]?.data) as { lastRunnerSeq: number };
      outbox = outbox.filter((entry) => entry.runnerSeq > lastRunnerSeq);
      opened.say({ type: 'runner.hello', turnId: turn?.turnId ?? null, known });
      for (const entry of outbox) opened.say(entry);
    },
    /** Its connection is gone, and its session is told so. */
    cut(): void {
      const lost = socket;
      socket = undefined;
      lost?.drop();
    },
    /** Its connection is gone with its session's process. */
    lose(): void {
      socket = undefined;
    },
    /** What it says stays on the way, until it is cut or connects anew. */
    slow(given: boolean): void {
      isSlow = given;
    },
    hear(most = Number.POSITIVE_INFINITY): void {
      for (let n = 0; n < most && socket && heard < socket.events.length; n++) {
        obey(socket.events[heard++] as Command);
      }
    },
    work(doing: Doing): void {
      if (!turn) return;
      const { turnId, open, isAborted } = turn;
      const n = ++said;
      if (isAborted) end('canceled');
      else if (open.size > 0) return;
      else if (doing === 'text') {
        say({ type: 'message.part.text-delta', turnId, delta: `${turnId}:${n} ` });
      } else if (doing === 'question') {
        // Counted from one in every turn, as some agents do.
        const questionId = `q${++turn.asked}`;
        open.add(questionId);
        say({ type: 'question', turnId, questionId, text: 'Deploy?' });
      } else if (doing === 'event') say({ type: 'git-state', branch: `b${n}` });
      else end(doing === 'end' ? 'end_turn' : 'error');
    },
    finish(): void {
      turn?.open.clear();
      if (turn) end('end_turn');
    },
  };
}
