import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  importJWK,
  importSPKI,
  type JSONWebKeySet,
  type JWK,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose';
import { KEYS_UNAVAILABLE, SabirError } from '../core/errors.ts';
import { monotonicNow } from '../core/timers.ts';
import type { User } from '../turns/upstream.ts';
import { isOwnPage } from './origin.ts';

type KeyOption =
  /** A secret that the server shares with whoever signs. HS256, HS384, HS512. */
  | { secret: string | Uint8Array }
  /** PEM (SPKI) or JWK. RS256 unless `algorithms` says otherwise. */
  | { publicKey: string | JWK }
  /** The address of a key set, or the set itself. */
  | { jwks: string | URL | JSONWebKeySet };

export type JwtAuthOptions = KeyOption & {
  issuer?: string | string[];
  audience?: string | string[];
  algorithms?: string[];
  clockToleranceSeconds?: number;
  /**
   * Refuses a token without `exp`, which would be good for ever.
   *
   * @default true
   */
  requireExpiry?: boolean;
  /**
   * A longer token is refused.
   *
   * @default 8_192
   */
  maxTokenLength?: number;
  /**
   * How long a key set may take to be fetched. Past it, and while it cannot be fetched, a request that
   * needs it is answered with a 503.
   *
   * @default 5_000
   */
  jwksTimeoutMs?: number;
  /**
   * Takes the token from a cookie too, for `EventSource`, which cannot send a header. A browser
   * sends cookies along whoever asks, so the asking page must be one of `origins`.
   */
  cookie?: { name: string; origins: readonly string[] };
  /**
   * Claims → user; null refuses. Default: `sub` is the id, and the claims are kept. The token is
   * there for an upstream that wants it: what is put into the user gets to `open`.
   */
  toUser?(claims: JWTPayload, token: string): User | null | Promise<User | null>;
};

/** After a failure, a key set is not asked for again for so long, however many requests want it. */
const JWKS_RETRY_MS = 5_000;

const SHARED_SECRET_ALGORITHMS = ['HS256', 'HS384', 'HS512'];

/**
 * `authenticate` for JSON web tokens in `Authorization: Bearer`. A token that is missing, forged,
 * not yet valid or expired is refused with 401; a key set that cannot be fetched is a 503.
 *
 * @example
 * createChatGateway({ authenticate: jwtAuth({ secret: process.env.JWT_SECRET ?? '' }), … })
 */
export function jwtAuth(options: JwtAuthOptions): (request: Request) => Promise<User | null> {
  const { issuer, audience, clockToleranceSeconds, cookie, toUser = userOf } = options;
  const { requireExpiry = true, maxTokenLength = 8_192 } = options;
  const { algorithms, getKey } = keysOf(options);
  const checks = {
    algorithms,
    ...(requireExpiry && { requiredClaims: ['exp'] }),
    ...(issuer !== undefined && { issuer }),
    ...(audience !== undefined && { audience }),
    ...(clockToleranceSeconds !== undefined && { clockTolerance: clockToleranceSeconds }),
  };
  return async (request) => {
    const token = bearerOf(request) ?? (cookie && cookieOf(request, cookie));
    if (!token || token.length > maxTokenLength) return null;
    try {
      const { payload } = await jwtVerify(token, getKey, checks);
      const user = await toUser(payload, token);
      if (!user || payload.exp === undefined) return user;
      const tolerated = payload.exp + (clockToleranceSeconds ?? 0);
      return { expiresAt: tolerated * 1000, ...user };
    } catch (error) {
      if (isAboutToken(error)) return null;
      throw error;
    }
  };
}

function keysOf(options: JwtAuthOptions): { algorithms: string[]; getKey: JWTVerifyGetKey } {
  if ('secret' in options) {
    const { secret } = options;
    const key = typeof secret === 'string' ? new TextEncoder().encode(secret) : secret;
    // A short secret can be guessed from one token.
    if (!key || key.length < 32) throw new TypeError('jwtAuth: the secret is under 32 bytes long.');
    const algorithms = (options.algorithms ?? SHARED_SECRET_ALGORITHMS).filter((alg) =>
      SHARED_SECRET_ALGORITHMS.includes(alg),
    );
    if (algorithms.length === 0) {
      throw new TypeError('jwtAuth: a secret is for HS256, HS384 and HS512 only.');
    }
    return { algorithms, getKey: async () => key };
  }
  if ('publicKey' in options) {
    const { publicKey } = options;
    const named = typeof publicKey === 'string' ? undefined : publicKey.alg;
    const algorithms = options.algorithms ?? [named ?? 'RS256'];
    const keyFor = onceEach(async (alg: string) =>
      typeof publicKey === 'string' ? importSPKI(publicKey, alg) : importJWK(publicKey, alg),
    );
    return { algorithms, getKey: ({ alg = '' }) => keyOf(alg, algorithms, keyFor) };
  }
  if (!('jwks' in options) || !options.jwks) {
    throw new TypeError('jwtAuth needs one of secret, publicKey and jwks.');
  }
  const { jwks } = options;
  const isAddress = typeof jwks === 'string' || jwks instanceof URL;
  return {
    // Never a shared secret: a public key would pass for one.
    algorithms: options.algorithms ?? ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA', 'Ed25519'],
    getKey: isAddress
      ? createRemoteKeys(new URL(jwks), options.jwksTimeoutMs)
      : createLocalJWKSet(jwks),
  };
}

/**
 * The keys at an address. An unknown key id makes it fetch them again, at most every 30 seconds, and a failed
 * fetch is repeated at most every 5: tokens with made-up ids cannot make this server flood that address.
 */
function createRemoteKeys(address: URL, timeoutMs = 5_000): JWTVerifyGetKey {
  let retryAt = 0;
  let why = '';
  const findKey = createRemoteJWKSet(address, {
    timeoutDuration: timeoutMs,
    cooldownDuration: 30_000,
    async [customFetch](...request) {
      if (monotonicNow() < retryAt) throw new Error(why);
      why = 'It did not answer.';
      retryAt = monotonicNow() + JWKS_RETRY_MS;
      const response = await fetch(...request);
      const body = await response.text();
      const { status } = response;
      why = `It answered ${status}${isKeySet(body) ? '' : ', without a key set'}.`;
      if (response.ok && isKeySet(body)) retryAt = 0;
      return new Response(body, { status });
    },
  });
  return async (header, token) => {
    try {
      return await findKey(header, token);
    } catch (error) {
      if (isAboutToken(error)) throw error;
      const { origin, pathname } = address;
      throw new SabirError(KEYS_UNAVAILABLE, undefined, {
        cause: { from: origin + pathname, why },
      });
    }
  };
}

function isKeySet(body: string): boolean {
  try {
    return Array.isArray(JSON.parse(body).keys);
  } catch {
    return false;
  }
}

/**
 * A key is of one kind, and `algorithms` may name others: a token signed by one of those is not by
 * this key. A key that fits none of them is a mistake in the options.
 */
async function keyOf<T>(
  alg: string,
  algorithms: string[],
  keyFor: (alg: string) => Promise<T>,
): Promise<T> {
  try {
    return await keyFor(alg);
  } catch (error) {
    const keys = await Promise.allSettled(algorithms.map(keyFor));
    if (keys.every(({ status }) => status === 'rejected')) throw error;
    throw new errors.JOSEAlgNotAllowed(`The key is not for ${alg}.`);
  }
}

/** `alg` is one of the few that are allowed. */
function onceEach<T>(make: (alg: string) => Promise<T>): (alg: string) => Promise<T> {
  const made = new Map<string, Promise<T>>();
  return (alg) => {
    const key = made.get(alg) ?? make(alg);
    made.set(alg, key);
    return key;
  };
}

function isAboutToken(error: unknown): boolean {
  return (
    error instanceof errors.JWTInvalid ||
    error instanceof errors.JWTExpired ||
    error instanceof errors.JWTClaimValidationFailed ||
    error instanceof errors.JWSInvalid ||
    error instanceof errors.JWSSignatureVerificationFailed ||
    error instanceof errors.JOSEAlgNotAllowed ||
    error instanceof errors.JOSENotSupported ||
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys
  );
}

/** The token's own expiry counts, whatever else somebody calls `expiresAt`. */
function userOf({ sub, expiresAt: _, ...claims }: JWTPayload): User | null {
  if (typeof sub !== 'string' || sub === '') return null;
  return { ...claims, id: sub };
}

function bearerOf(request: Request): string | undefined {
  const [scheme, token, ...rest] = (request.headers.get('authorization') ?? '').trim().split(/ +/);
  return scheme?.toLowerCase() === 'bearer' && rest.length === 0 ? token : undefined;
}

function cookieOf(
  request: Request,
  { name, origins }: NonNullable<JwtAuthOptions['cookie']>,
): string | undefined {
  const { headers, method } = request;
  const origin = headers.get('origin');
  // A browser leaves the origin out when a page asks its own server; it never does so on a POST.
  const site = headers.get('sec-fetch-site');
  const isOurs =
    origin === null
      ? method === 'GET' && (site === null || site === 'same-origin')
      : isOwnPage(request, origin) || origins.includes(origin);
  if (!isOurs) return undefined;
  for (const pair of (headers.get('cookie') ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return undefined;
}
