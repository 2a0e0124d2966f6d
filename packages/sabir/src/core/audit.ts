import type { ErrorCode } from './errors.ts';
import type { Logger } from './translator.ts';

/** One thing that a person did, or tried to do. Ids only: no event holds message content. */
export type AuditEvent = {
  /** Milliseconds since 1970. */
  at: number;
  /** `withdraw` takes back a prompt that still waits in the queue; `steer` sends a message into a running turn. */
  action: 'prompt' | 'stop' | 'answer' | 'withdraw' | 'steer';
  outcome: 'accepted' | 'refused';
  /** Why it was refused. */
  code?: ErrorCode;
  userId: string;
  role: 'viewer' | 'collaborator' | 'owner';
  sessionId: string;
  chatId?: string;
  turnId?: string;
  questionId?: string;
  requestId?: string;
  /** For an answer to an approval: whether the person approved. */
  approved?: boolean;
  /** Where the request came from, if that is known. */
  address?: string;
  via: 'http' | 'socket';
};

export type OnAudit = (event: AuditEvent) => unknown;

/** Reports events to `onAudit` without waiting for it. A hook that fails is logged and changes nothing. */
export function createAudit(
  onAudit: OnAudit | undefined,
  logger: Logger | undefined,
): (event: Omit<AuditEvent, 'at'>) => void {
  if (!onAudit) return () => undefined;
  return (event) => {
    void (async () => onAudit({ at: Date.now(), ...event }))().catch((error: unknown) =>
      logger?.error?.('onAudit failed', { action: event.action, error }),
    );
  };
}
