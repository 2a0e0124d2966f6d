import { countSkipped, type Logger, type TranslatorStats } from '../core/translator.ts';
import type { SessionSocket } from './options.ts';
import { PROTOCOL, type RunnerCommand } from './protocol.ts';
import { readRunnerEvent } from './read-runner-event.ts';
import type { RunnerEvent } from './runner-says.ts';
import type { SessionStorage } from './storage.ts';

const KEY = 'runner';
/** A close code of ours. The runner that gets it tries again, less and less often. */
export const ANOTHER_RUNNER = 4409;

type Remembered = { runnerId: string; seq: number };
type RunnerLinkOptions = { sessionId: string; storage: SessionStorage; logger: Logger | undefined };

/** What a runner says that is to be acted on. */
type Heard = { kind: 'turn' | 'about' | 'hello' | 'domain'; event: RunnerEvent };

/**
 * The one runner of a session: its socket while it has one, and how much of what it said has
 * arrived. That is stored with what it said, so that after a restart nothing is taken twice.
 */
export function createRunnerLink({ sessionId, storage, logger }: RunnerLinkOptions) {
  const skipped: TranslatorStats = { unknown: {}, malformed: {} };
  let socket: SessionSocket | undefined;
  let remembered: Remembered = { runnerId: '', seq: 0, ...parse(storage.get(KEY)) };
  let isChanged = false;
  let isReady = false;
  let ackedSeq = 0;
  let isAckPlanned = false;

  function send(command: RunnerCommand): void {
    try {
      socket?.send(JSON.stringify(command));
    } catch {
      // It is gone; the platform will say so.
    }
  }

  /** False for what has been taken before. */
  function take(seq: unknown): boolean {
    if (typeof seq !== 'number') return true;
    if (seq <= remembered.seq) return false;
    remembered.seq = seq;
    isChanged = true;
    return true;
  }

  function skip(type: string): void {
    const key = countSkipped(skipped, 'malformed', type.slice(0, 100));
    if (key) logger?.warn('an event of the runner was skipped', { sessionId, type: key });
  }

  return {
    /** Whoever spoke last, also when it is gone. */
    get runnerId() {
      return remembered.runnerId;
    },
    get isConnected() {
      return socket !== undefined;
    },
    /** It is one of ours, which says who it is. */
    get isNamed() {
      return remembered.runnerId !== '';
    },
    /** Takes prompts. */
    get isReady() {
      return isReady;
    },
    needsHistory: false,
    send,
    /** False if there is another one already. */
    connect(next: SessionSocket, runnerId: string | undefined): boolean {
      if (socket) {
        if (runnerId === undefined || runnerId !== remembered.runnerId) return false;
        // It has lost its old connection, and knows it before we do.
        socket.close(1000, 'replaced by a newer connection');
      }
      socket = next;
      if (runnerId !== remembered.runnerId) {
        remembered = { runnerId: runnerId ?? '', seq: 0 };
        isChanged = true;
      }
      ackedSeq = remembered.seq;
      // One that says who it is says hello as well; others are taken as they come.
      isReady = runnerId === undefined;
      send({
        type: 'init',
        session: { id: sessionId },
        data: { protocol: PROTOCOL, lastRunnerSeq: remembered.seq },
      });
      return true;
    },
    greet(needsHistory: boolean): void {
      this.needsHistory = needsHistory;
      isReady = true;
    },
    isCurrent: (given: SessionSocket) => given === socket,
    disconnect(): void {
      socket = undefined;
      isReady = false;
    },
    /** Nothing for what has been taken before, and for what makes no sense. */
    read(frame: string): Heard | undefined {
      const heard = readRunnerEvent(frame);
      if (heard.kind === 'malformed') skip(heard.type);
      else if (heard.kind === 'ping') send({ type: 'pong' });
      else if (take(heard.event.runnerSeq)) {
        const { runnerSeq: _, ...event } = heard.event;
        return { kind: heard.kind, event: event as RunnerEvent };
      }
      return undefined;
    },
    /** Part of the step that stores what it said. */
    store(): void {
      if (!isChanged) return;
      isChanged = false;
      storage.set(KEY, JSON.stringify(remembered));
    },
    /** Says what has arrived, once everything that came with it is stored. */
    acknowledgeSoon(): void {
      if (isAckPlanned || remembered.seq === ackedSeq) return;
      isAckPlanned = true;
      queueMicrotask(() => {
        isAckPlanned = false;
        ackedSeq = remembered.seq;
        send({ type: 'ack', runnerSeq: ackedSeq });
      });
    },
    close(code: number, reason: string): void {
      try {
        socket?.close(code, reason);
      } catch {
        // It is gone already.
      }
      this.disconnect();
    },
  };
}

function parse(text: string | undefined): Partial<Remembered> {
  return text === undefined ? {} : JSON.parse(text);
}
