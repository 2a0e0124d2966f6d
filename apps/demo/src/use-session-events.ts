import { useEffect, useState, useSyncExternalStore } from 'react';
import type { Connection } from './connection.ts';
import { createSessionSocket } from './session-socket.ts';
import type { SessionState } from './session-state.ts';

/**
 * What `useChat` cannot know: that another window has asked, who is there, and what waits. The
 * words themselves come through `useChat`.
 */
export function useSessionEvents(
  address: string,
  connection: Connection,
): SessionState & { withdraw(promptId: string): void } {
  const [socket] = useState(() => createSessionSocket(address, connection));
  useEffect(() => socket.open(), [socket]);
  const state = useSyncExternalStore(socket.subscribe, socket.getState);
  return { ...state, withdraw: (promptId) => socket.send({ type: 'withdraw', promptId }) };
}
