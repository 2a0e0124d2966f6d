/** How a session stands, from what it says on its socket. */

/** A prompt that waits for its turn, whichever window it came from. */
export type QueuedPrompt = { promptId: string; content: string; position: number };

export type SessionState = {
  /** False until the session has spoken, and again when the connection is gone. */
  isOpen: boolean;
  /** How often it was entered: each time, something may have happened before. */
  visits: number;
  /** The turn that runs; its id is that of the answer's message. */
  running: string | undefined;
  /** The last ones that ended while this window listened. */
  ended: readonly string[];
  queue: QueuedPrompt[];
  windows: number;
};

type Guest = { id: string };
/** As much of what is said as this page looks at. */
type SessionEvent =
  | {
      type: 'init';
      data: {
        turn: { turnId: string } | null;
        queue: QueuedPrompt[];
        connectedUsers: Guest[];
      };
    }
  | { type: 'user.joined' | 'user.left'; connectedUsers: Guest[] }
  | { type: 'message.create' | 'message.finalize'; turnId: string }
  | { type: 'queue.state'; data: { queue: QueuedPrompt[] } };

const REMEMBERED = 8;
/** The gateway is in the session too, and is nobody's window. */
const WINDOW = 'window-';

export const toWindowId = (random: string) => `${WINDOW}${random}`;

export const UNKNOWN_SESSION: SessionState = {
  isOpen: false,
  visits: 0,
  running: undefined,
  ended: [],
  queue: [],
  windows: 0,
};

/** The same state where the event is about something else. */
export function readSessionEvent(state: SessionState, said: { type: string }): SessionState {
  const event = said as SessionEvent;
  switch (event.type) {
    case 'init': {
      const { turn, queue, connectedUsers } = event.data;
      const windows = countWindows(connectedUsers);
      const visits = state.visits + 1;
      return { ...state, isOpen: true, visits, running: turn?.turnId, queue, windows };
    }
    case 'user.joined':
    case 'user.left':
      return { ...state, windows: countWindows(event.connectedUsers) };
    case 'message.create':
      return { ...state, running: event.turnId };
    case 'message.finalize':
      return {
        ...state,
        running: undefined,
        ended: [...state.ended, event.turnId].slice(-REMEMBERED),
      };
    case 'queue.state':
      return { ...state, queue: event.data.queue };
    default:
      return state;
  }
}

function countWindows(guests: Guest[]): number {
  return guests.filter(({ id }) => id.startsWith(WINDOW)).length;
}
