/** What a gateway shows a session server in the same process to come in as somebody it knows. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { User } from '../turns/upstream.ts';

const PREFIX = 'pass.';

/** Good for as long as this process lives, and nowhere else. */
export function createPasses() {
  const key = randomBytes(32);
  const sign = (claims: string) => createHmac('sha256', key).update(claims).digest();

  return {
    /** Who works for a session, and is nobody. */
    runner: `${PREFIX}${randomBytes(32).toString('base64url')}`,
    of(user: User): string {
      const claims = Buffer.from(JSON.stringify(user)).toString('base64url');
      return `${PREFIX}${claims}.${sign(claims).toString('base64url')}`;
    },
    read(token: string | undefined): User | undefined {
      if (!token?.startsWith(PREFIX)) return undefined;
      const [claims = '', signature = ''] = token.slice(PREFIX.length).split('.');
      const given = Buffer.from(signature, 'base64url');
      const expected = sign(claims);
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
      return JSON.parse(Buffer.from(claims, 'base64url').toString());
    },
  };
}
