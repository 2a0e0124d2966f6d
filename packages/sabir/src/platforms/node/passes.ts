/** Passes with which a gateway connects to a session server in the same process on behalf of a user. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { User } from '../../turns/upstream.ts';
import type { AdmittedUser } from './session-server-options.ts';

const PREFIX = 'pass.';

type Where = Pick<AdmittedUser, 'role'> & { sessionId: string };

/** Good for as long as this process lives, and nowhere else. */
export function createPasses() {
  const key = randomBytes(32);
  const sign = (claims: string) => createHmac('sha256', key).update(claims).digest();
  const runner = `${PREFIX}${randomBytes(32).toString('base64url')}`;

  return {
    /** Who works for a session, and is nobody. */
    runner,
    isRunner: (token: string | undefined) => timingSafeEqual(hash(token ?? ''), hash(runner)),
    /**
     * For one session, with the role that the gateway granted. It does not expire with the user's
     * sign-in: a turn goes on after that, and the gateway ends the streams of its viewers itself.
     */
    of({ expiresAt: _, ...user }: User, { sessionId, role }: Where): string {
      const claims = Buffer.from(JSON.stringify({ user, role, sessionId })).toString('base64url');
      return `${PREFIX}${claims}.${sign(claims).toString('base64url')}`;
    },
    read(token: string | undefined, sessionId: string): AdmittedUser | null {
      if (!token?.startsWith(PREFIX)) return null;
      const [claims = '', signature = ''] = token.slice(PREFIX.length).split('.');
      const given = Buffer.from(signature, 'base64url');
      const expected = sign(claims);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
      const { user, role, sessionId: place } = JSON.parse(`${Buffer.from(claims, 'base64url')}`);
      return place === sessionId ? { user, role } : null;
    },
  };
}

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
