import type { SessionState } from './session-state.ts';
import type { ServerReport } from './use-server-report.ts';

type Situation = { session: SessionState; isCut: boolean; report: ServerReport };

/** How this window is connected and who else is there, in one line. */
export function toSessionNote({ session, isCut, report }: Situation): string {
  if (isCut) return 'Connection dropped: the session goes on without this window';
  if (report === 'absent') return 'No server here: the useChat tab can do without';
  if (report?.gateway === false) {
    return 'The gateway is off on this server: the useChat tab can do without';
  }
  if (!session.isOpen) return session.visits > 0 ? 'Connection lost: reconnecting…' : 'Connecting…';
  const { windows } = session;
  const who = windows === 1 ? '1 window: open this address again' : `${windows} windows`;
  return ['Connected', who, report?.agent].filter(Boolean).join(' · ');
}
