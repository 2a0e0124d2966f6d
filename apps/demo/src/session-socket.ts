import { randomHex } from './chat-id.ts';
import type { Connection } from './connection.ts';
import {
  readSessionEvent,
  type SessionState,
  toWindowId,
  UNKNOWN_SESSION,
} from './session-state.ts';

const LEAST_WAIT_MS = 250;
const MOST_WAIT_MS = 5_000;
/** How long a connection may be silent; half as often it is asked whether it is still there. */
const SILENCE_MS = 40_000;

/** A window's seat in a session: hears how it stands, and comes back when it was cut off. */
type SessionSocket = {
  getState(): SessionState;
  subscribe(listener: () => void): () => void;
  send(message: object): void;
  /** Gives the way out. */
  open(): () => void;
};

export function createSessionSocket(address: string, connection: Connection): SessionSocket {
  const listeners = new Set<() => void>();
  const wishes = new URLSearchParams({
    role: 'client',
    dialect: 'v2',
    messages: '0',
    window: toWindowId(randomHex()),
  });
  const url = `${address}/ws?${wishes}`;
  let state = UNKNOWN_SESSION;
  let socket: WebSocket | undefined;
  let attempts = 0;
  let timer = 0;
  let heardAt = 0;

  function show(next: SessionState): void {
    if (next === state) return;
    state = next;
    for (const listener of listeners) listener();
  }

  function connect(): void {
    clearTimeout(timer);
    if (socket || connection.isCut) return;
    const current = new WebSocket(url);
    socket = current;
    current.addEventListener('message', ({ data }) => {
      attempts = 0;
      heardAt = Date.now();
      if (current === socket) show(readSessionEvent(state, JSON.parse(data)));
    });
    current.addEventListener('close', () => {
      if (current === socket) comeBack();
    });
  }

  function comeBack(): void {
    leave();
    const wait = Math.min(MOST_WAIT_MS, LEAST_WAIT_MS * 2 ** attempts++);
    timer = window.setTimeout(connect, wait * (0.5 + Math.random() / 2));
  }

  /** A connection may be gone without a word. */
  function listen(): void {
    if (!state.isOpen) return;
    if (Date.now() - heardAt > SILENCE_MS) comeBack();
    else send({ type: 'ping' });
  }

  function leave(): void {
    clearTimeout(timer);
    const left = socket;
    socket = undefined;
    left?.close();
    show({ ...state, isOpen: false });
  }

  function send(message: object): void {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  }

  return {
    getState: () => state,
    send,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    open() {
      const follow = () => (connection.isCut ? leave() : connect());
      const unsubscribe = connection.subscribe(follow);
      const watch = setInterval(listen, SILENCE_MS / 2);
      connect();
      return () => {
        clearInterval(watch);
        unsubscribe();
        leave();
      };
    },
  };
}
