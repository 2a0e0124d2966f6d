import type { SessionState } from 'sabir/client';
import type { ChatMessage } from '../chat-message.ts';
import { toConnectionNote } from '../session-note.ts';

/** How this window is connected and who is there, in one line. */
export function toServeNote(session: SessionState<ChatMessage>): string {
  const { me, people } = session;
  const names = people.map(({ id, name }) => name ?? id);
  const mayOnlyWatch = me?.role === 'viewer' && 'you may watch';
  return (
    toConnectionNote(session) ??
    ['Connected', names.join(', '), mayOnlyWatch].filter(Boolean).join(' · ')
  );
}
