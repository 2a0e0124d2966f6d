import { createHash, timingSafeEqual } from 'node:crypto';
import { usageError } from './cli-error.ts';
import type { Given } from './flags.ts';

/** Whoever knows the secret is this person. */
export type Secret = {
  name: string;
  secret: string;
  role: 'owner' | 'viewer';
  /** Otherwise the name is made up. */
  isNamed: boolean;
  isFromEnvironment: boolean;
};

/** A secret may end in `=`, as base64 does: that is no name. */
const NAMED = /^([\w.@-]{1,64})=([^=].*)$/;
/** What a header can carry. */
const SENDABLE = /^[\x21-\x7e]+$/;

/** `name=secret`, or the secret alone. */
export function readSecrets(given: Given | undefined, role: Secret['role']): Secret[] {
  if (!given) return [];
  const { values, source, isFromEnvironment } = given;
  return values.map((text, index) => {
    const named = NAMED.exec(text);
    const madeUp = index === 0 ? role : `${role}-${index + 1}`;
    const [, name = madeUp, secret = text] = named ?? [];
    if (!SENDABLE.test(secret)) {
      throw usageError(
        `${source} must be a secret of letters, digits and signs without spaces, or name=secret.`,
      );
    }
    return { name, secret, role, isNamed: named !== null, isFromEnvironment };
  });
}

/** Takes the same time whatever was given, and looks at all of them: neither tells anything. */
export function findSecret<One extends { secret: string }>(
  secrets: readonly One[],
  given: string,
): One | undefined {
  const digest = digestOf(given);
  const matching = secrets.filter(({ secret }) => timingSafeEqual(digestOf(secret), digest));
  return matching[0];
}

/** Of one length, as comparing in constant time needs it. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
