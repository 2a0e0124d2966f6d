import {
  NOT_FOUND,
  NOT_SIGNED_IN,
  ORIGIN_REFUSED,
  SabirError,
  TOO_MANY_REQUESTS,
} from '../core/errors.ts';
import { isAtLeast, type Role } from '../core/roles.ts';
import type { User } from '../turns/upstream.ts';
import { contractChatOf } from './contract-chat.ts';
import type { RunHook } from './hook-error.ts';
import type { AdmitContext, ChatGatewayOptions } from './options.ts';
import { isTrustedPage, reportPage } from './origin.ts';
import type { Visit } from './visit.ts';

/**
 * Who this is, and that they may do this here. What somebody may not do looks exactly like what
 * does not exist: an answer never tells that a session is there.
 */
export function createGuard(
  options: Pick<ChatGatewayOptions, 'authenticate' | 'access' | 'enabled' | 'admit' | 'cors'>,
  runHook: RunHook,
) {
  function checkPage(request: Request): void {
    // Somebody's own `authenticate` may go by a cookie, which comes along whoever asks.
    const isSocket = request.headers.get('upgrade')?.toLowerCase() === 'websocket';
    if (isTrustedPage(request, options.cors)) return;
    reportPage(request, options.cors);
    if (request.method === 'POST' || isSocket) throw new SabirError(ORIGIN_REFUSED);
  }

  async function identify(request: Request): Promise<User> {
    checkPage(request);
    const user = await runHook('authenticate', () => options.authenticate(request));
    if (!user || (user.expiresAt !== undefined && user.expiresAt <= Date.now())) {
      throw new SabirError(NOT_SIGNED_IN);
    }
    await runHook('authenticate result', () => checkId(user));
    return user;
  }

  async function checkSwitch(user: User, sessionId: string): Promise<void> {
    const { enabled } = options;
    if (enabled && !(await runHook('enabled', () => options.enabled?.(user, sessionId)))) {
      throw new SabirError(NOT_FOUND);
    }
  }

  async function permit(user: User, sessionId: string, needed: Role): Promise<Admitted> {
    await checkSwitch(user, sessionId);
    const role = await runHook('access', () => options.access(user, sessionId));
    if (!role) throw new SabirError(NOT_FOUND);
    if (!isAtLeast(role, needed)) throw new RoleTooLow(user, role, sessionId);
    return { user, role };
  }

  return {
    checkPage,
    identify,
    checkSwitch,
    permit,
    permitRequest: async (request: Request, sessionId: string, needed: Role) =>
      permit(await identify(request), sessionId, needed),
    /** Asks for the application's own rules before a message's body is read. */
    async admit({ request, address }: Visit, user: User, where: AdmitContext): Promise<void> {
      if (!options.admit) return;
      const context = { ...where, ...(address !== undefined && { address }) };
      const answer = await runHook('admit', () => options.admit?.(request, user, context));
      if (answer === false) throw new SabirError(TOO_MANY_REQUESTS);
    },
  };
}

/** The user's role is too low for this. The answer is the same 404 as for a session that does not exist. */
export class RoleTooLow extends SabirError {
  readonly user: User;
  readonly role: Role;
  readonly sessionId: string;

  constructor(user: User, role: Role, sessionId: string) {
    super(NOT_FOUND);
    this.user = user;
    this.role = role;
    this.sessionId = sessionId;
  }
}

export type Guard = ReturnType<typeof createGuard>;

/**
 * Connections and answers are kept by it: people without one would share theirs. It becomes a part of session
 * ids, which a lone surrogate cannot.
 */
function checkId({ id }: User): void {
  if (typeof id === 'string' && id !== '' && id.isWellFormed()) return;
  throw new TypeError('authenticate gave a user whose id is not a well-formed string, or empty.');
}

export type Admitted = { user: User; role: Role };

export function mayStop(role: Role): boolean {
  return isAtLeast(role, 'collaborator');
}

export type SessionRecord = {
  ownerId: string;
  /** An orchestrator acts for its owner alone: nobody else gets in, whatever their role. */
  isOrchestrator?: boolean;
  /** The others, by user id. */
  roles?: Readonly<Record<string, Role>>;
};

/**
 * `access` for people who keep sessions somewhere: owner, members, and orchestrators that are
 * their owner's alone. A minted chat of `/api/chat` or `/api/onboarding` is its user's, and `find`
 * is not asked for it.
 *
 * @example
 * access: sessionAccess((id) => database.findSession(id))
 */
export function sessionAccess(
  find: (
    sessionId: string,
  ) => SessionRecord | null | undefined | Promise<SessionRecord | null | undefined>,
): (user: User, sessionId: string) => Promise<Role | null> {
  return async (user, sessionId) => {
    const chat = contractChatOf(sessionId);
    if (chat) return chat.userId === user.id ? 'owner' : null;
    const session = await find(sessionId);
    if (!session) return null;
    if (session.ownerId === user.id) return 'owner';
    const { isOrchestrator = false, roles = {} } = session;
    if (isOrchestrator || !Object.hasOwn(roles, user.id)) return null;
    return roles[user.id] ?? null;
  };
}
