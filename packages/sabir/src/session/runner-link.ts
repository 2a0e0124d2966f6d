import type { SessionSocket } from './options.ts';
import { PROTOCOL, type RunnerCommand } from './protocol.ts';
import type { SessionStorage } from './storage.ts';

const KEY = 'runner';
/** A close code of ours. The runner that gets it tries again, less and less often. */
export const ANOTHER_RUNNER = 4409;

type Remembered = { runnerId: string; seq: number };

/**
 * The one runner of a session: its socket while it has one, and how much of what it said has
 * arrived. That is stored with what it said, so that after a restart nothing is taken twice.
 */
export function createRunnerLink(sessionId: string, storage: SessionStorage) {
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
    /** False for what has been taken before. */
    take(seq: unknown): boolean {
      if (typeof seq !== 'number') return true;
      if (seq <= remembered.seq) return false;
      remembered.seq = seq;
      isChanged = true;
      return true;
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
