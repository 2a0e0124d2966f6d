import { type AuditEvent, createAudit, type OnAudit } from '../core/audit.ts';
import { SabirError } from '../core/errors.ts';
import { isObject } from '../core/loose.ts';
import { hashChatIds } from '../core/safe-logger.ts';
import type { Logger } from '../core/translator.ts';
import { RoleTooLow } from './access.ts';
import type { Place } from './chat-route.ts';
import type { Visit } from './visit.ts';

type Action = AuditEvent['action'];
/** The user of an audited request, and the chat. */
type Doing = {
  place: Pick<Place, 'user' | 'role' | 'sessionId' | 'chatId' | 'caller'>;
  visit: Visit;
};
type Details = Partial<Pick<AuditEvent, 'turnId' | 'questionId' | 'approved'>>;

export type ChatAudit = ReturnType<typeof createChatAudit>;

/** Reports who prompted, stopped and answered over HTTP, and whom the gateway refused to. */
export function createChatAudit(onAudit: OnAudit | undefined, logger: Logger | undefined) {
  const report = createAudit(onAudit, logger);

  function write(
    action: Action,
    { place, visit }: Doing,
    more: Details & Pick<AuditEvent, 'outcome' | 'code'>,
  ): void {
    const { user, role, caller } = place;
    const { requestId, address } = visit;
    // On a public route the chat's id is all that opens the chat.
    const shown = caller.kind === 'address' ? hashChatIds : (id: string) => id;
    report({
      action,
      userId: user.id,
      role,
      requestId,
      via: 'http',
      ...more,
      sessionId: shown(place.sessionId),
      chatId: shown(place.chatId),
      ...(address !== undefined && { address }),
    });
  }

  return {
    accepted: (action: Action, doing: Doing, details: Details): void =>
      write(action, doing, { outcome: 'accepted', ...details }),
    refused: (action: Action, doing: Doing, error: unknown, details: Details = {}): void => {
      if (!(error instanceof SabirError)) return;
      write(action, doing, { outcome: 'refused', code: error.code, ...details });
    },
    /** Admits a user to a chat; reports a user whose role there is too low. */
    async entering<T>(
      action: Action,
      where: { chatId: string | undefined; visit: Visit },
      enter: () => Promise<T>,
    ): Promise<T> {
      try {
        return await enter();
      } catch (error) {
        if (error instanceof RoleTooLow) {
          const { user, role, sessionId, code } = error;
          const { requestId, address } = where.visit;
          report({
            action,
            outcome: 'refused',
            code,
            userId: user.id,
            role,
            sessionId,
            requestId,
            ...(where.chatId !== undefined && { chatId: where.chatId }),
            ...(address !== undefined && { address }),
            via: 'http',
          });
        }
        throw error;
      }
    },
  };
}

/** Whether an answer to an approval is a yes; undefined for other answers. */
export function approvedIn(answer: unknown): { approved?: boolean } {
  const approved = isObject(answer) ? answer.approved : answer;
  return typeof approved === 'boolean' ? { approved } : {};
}
