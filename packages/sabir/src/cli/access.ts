/** Who may come in, by what they show. */

import type { Role } from '../core/roles.ts';
import { jwtAuth } from '../gateway/index.ts';
import { isOwnPage } from '../gateway/origin.ts';
import { refuseRebound } from '../platforms/node/loopback.ts';
import type { User } from '../turns/upstream.ts';
import { findSecret } from './secrets.ts';
import type { ServeOptions } from './serve-flags.ts';

type Authenticate = (request: Request) => Promise<User | null>;
type AccessOptions = Pick<
  ServeOptions,
  'secrets' | 'jwtSecret' | 'runnerToken' | 'isOpen' | 'isOpenToAll' | 'cors'
>;

const ROLES: readonly unknown[] = ['viewer', 'collaborator', 'owner'] satisfies Role[];
const LOCAL: User = Object.freeze({ id: 'local', role: 'owner' });

export function createAccess(options: AccessOptions) {
  const authenticate = options.isOpen ? letIn(options) : askForToken(options);
  const runners = options.runnerToken === undefined ? [] : [{ secret: options.runnerToken }];
  return {
    authenticate,
    /** The same in every session: which there are is nobody's business but theirs who are in. */
    access: ({ role }: User): Role | null => (isRole(role) ? role : null),
    admitRunner: (request: Request) => findSecret(runners, bearerOf(request)) !== undefined,
    /** Whether somebody may see how much is going on. */
    isOwner: async (request: Request) => (await authenticate(request))?.role === 'owner',
  };
}

function isRole(value: unknown): value is Role {
  return ROLES.includes(value);
}

/**
 * Without tokens, whoever asks is the person at this machine. A page of somebody else's in their
 * browser is not, even if its name leads here: it has another host, or another origin.
 */
function letIn({ isOpenToAll, cors }: AccessOptions): Authenticate {
  return async (request) => {
    if (!isOpenToAll && refuseRebound(request)) return null;
    const origin = request.headers.get('origin');
    const isTrusted =
      origin === null || cors === '*' || isOwnPage(request, origin) || cors.includes(origin);
    return isTrusted ? LOCAL : null;
  };
}

function askForToken({ secrets, jwtSecret }: AccessOptions): Authenticate {
  const readJwt =
    jwtSecret === undefined
      ? undefined
      : jwtAuth({ secret: jwtSecret, algorithms: ['HS256'], toUser: toJwtUser });
  return async (request) => {
    const found = findSecret(secrets, bearerOf(request));
    if (found) return { id: found.name, name: found.name, role: found.role };
    return (await readJwt?.(request)) ?? null;
  };
}

/** A role that nobody knows is no role, rather than the default one. */
function toJwtUser({ sub, role = 'collaborator', name }: Record<string, unknown>): User | null {
  if (typeof sub !== 'string' || sub === '' || !isRole(role)) return null;
  return { id: sub, role, ...(typeof name === 'string' && { name }) };
}

function bearerOf({ headers }: Request): string {
  return /^Bearer +(\S+) *$/i.exec(headers.get('authorization') ?? '')?.[1] ?? '';
}
