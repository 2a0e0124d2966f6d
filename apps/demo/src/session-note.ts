import type { SessionState } from 'sabir/client';
import type { ChatMessage } from './chat-message.ts';
import type { ServerReport } from './use-server-report.ts';

type Session = SessionState<ChatMessage>;
type Situation = { session: Session; isCut: boolean; report: ServerReport };

/** How this window is connected and who else is there, in one line. */
export function toSessionNote({ session, isCut, report }: Situation): string {
  if (isCut) return 'Connection dropped: the session goes on without this window';
  if (report === 'absent') return 'No server here: the useChat tab can do without';
  if (report?.gateway === false) {
    return 'The gateway is off on this server: the useChat tab can do without';
  }
  const windows = session.people.length;
  const who = windows === 1 ? '1 window: open this address again' : `${windows} windows`;
  return toConnectionNote(session) ?? ['Connected', who, report?.agent].filter(Boolean).join(' · ');
}

/** What is wrong with the connection. */
export function toConnectionNote({ connection }: Session): string | undefined {
  if (connection === 'open') return undefined;
  if (connection === 'connecting') return 'Connecting…';
  if (connection === 'refused') return 'The server does not let this window in';
  const isOffline = connection === 'offline';
  return isOffline
    ? 'The server cannot be reached: trying again…'
    : 'Connection lost: reconnecting…';
}
