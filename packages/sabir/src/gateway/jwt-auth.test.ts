import { createServer } from 'node:http';
import {
  exportJWK,
  exportSPKI,
  generateKeyPair,
  type JWTPayload,
  SignJWT,
  UnsecuredJWT,
} from 'jose';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  chatBody,
  createLogSpy,
  createTestGateway,
  createUser,
  echo,
  refusal,
} from '../../test/gateway-client.ts';
import { serve } from '../platforms/node/serve.ts';
import { type JwtAuthOptions, jwtAuth } from './index.ts';

const SECRET = 'a secret of at least thirty-two bytes';
const key = new TextEncoder().encode(SECRET);
type Key = Parameters<SignJWT['sign']>[0];

const now = () => Math.floor(Date.now() / 1000);
const sign = (claims: JWTPayload = {}, by: Key = key, alg = 'HS256', header: object = {}) =>
  new SignJWT({ sub: 'carl', exp: now() + 60, ...claims })
    .setProtectedHeader({ alg, ...header })
    .sign(by);
const rsa = await generateKeyPair('RS256');
const ec = await generateKeyPair('ES256');

const ask = (init: RequestInit = {}) => new Request('http://gateway.test/x', init);
const bearing = (token: string) => ask({ headers: { authorization: `Bearer ${token}` } });
/** Who the token says it is, by these options. */
const check = (options: JwtAuthOptions, token: string) => jwtAuth(options)(bearing(token));

describe('a token', () => {
  const auth = jwtAuth({ secret: SECRET });

  it('says who asks, and until when it is good [RFC-AUTH-01]', async () => {
    const exp = now() + 60;
    expect(await auth(bearing(await sign({ exp, team: 7 })))).toEqual({
      id: 'carl',
      expiresAt: exp * 1000,
      exp,
      team: 7,
    });
  });

  it('that never expires is nobody’s, unless the options allow it', async () => {
    const endless = await new SignJWT({ sub: 'carl' })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(key);
    expect(await auth(bearing(endless))).toBeNull();
    const lax = { secret: SECRET, requireExpiry: false };
    expect(await check(lax, endless)).toEqual({ id: 'carl' });
  });

  it('longer than the limit is nobody’s, whoever signed it', async () => {
    const long = await sign({ padding: 'x'.repeat(7_000) });
    expect(long.length).toBeGreaterThan(8_192);
    expect(await auth(bearing(long))).toBeNull();
    expect(await check({ secret: SECRET, maxTokenLength: 20_000 }, long)).toMatchObject({
      id: 'carl',
    });
  });

  it('may be announced in any case, with spaces around it', async () => {
    const token = await sign();
    for (const authorization of [`bearer ${token}`, `BEARER   ${token}  `]) {
      expect(await auth(ask({ headers: { authorization } }))).toMatchObject({ id: 'carl' });
    }
  });

  it.each([
    ['that is missing', () => undefined],
    ['of another scheme', async () => `Basic ${await sign()}`],
    ['without a scheme', () => sign()],
    ['of nothing', () => 'Bearer '],
    ['that is none', () => 'Bearer not-a-token'],
    ['with something behind it', async () => `Bearer ${await sign()} x`],
    ['signed with another secret', async () => `Bearer ${await sign({}, key.toReversed())}`],
    ['that was changed', async () => `Bearer ${(await sign()).replace(/\.(.)/, '.A$1')}`],
    ['whose signature was cut', async () => `Bearer ${(await sign()).slice(0, -3)}`],
    ['that has expired', async () => `Bearer ${await sign({ exp: now() - 1 })}`],
    ['that is not good yet', async () => `Bearer ${await sign({ nbf: now() + 60 })}`],
    ['with an expiry that is no number', async () => `Bearer ${await sign({ exp: 'x' as never })}`],
    ['without a signature', () => `Bearer ${new UnsecuredJWT({ sub: 'carl' }).encode()}`],
    ['without a subject', async () => `Bearer ${await sign({ sub: undefined as never })}`],
    ['with an empty subject', async () => `Bearer ${await sign({ sub: '' })}`],
    ['with a subject that is no text', async () => `Bearer ${await sign({ sub: 7 as never })}`],
    [
      'of an algorithm for key pairs',
      async () => `Bearer ${await sign({}, rsa.privateKey, 'RS256')}`,
    ],
  ])('%s is nobody: 401 [RFC-AUTH-03] [RFC-ERR-08] [RFC-INT-3.1]', async (_, make) => {
    let opened = 0;
    const gateway = createTestGateway(
      () => {
        opened++;
        return echo;
      },
      { authenticate: auth },
    );
    const authorization = await make();
    const headers = new Headers();
    if (authorization !== undefined) headers.set('authorization', authorization);
    const response = await createUser(gateway, undefined).post(chatBody('hi'), { headers });
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(await refusal(response)).toMatchObject({ status: 401, code: 'not-signed-in' });
    expect(opened).toBe(0);
  });

  it('is asked for at every address of a session [RFC-AUTH-02]', async () => {
    const nobody = createUser(createTestGateway(echo, { authenticate: auth }), undefined);
    for (const response of [
      await nobody.post(chatBody('hi')),
      await nobody.resume(),
      await nobody.stop(),
      await nobody.answer('q', 1),
      await nobody.messages(),
      await nobody.channels(),
    ]) {
      expect(response.status).toBe(401);
    }
  });

  it('is held to issuer and audience where they are set', async () => {
    const options = { secret: SECRET, issuer: 'https://me', audience: ['chat', 'voice'] };
    const good = { iss: 'https://me', aud: 'voice' };
    expect(await check(options, await sign(good))).toMatchObject({ id: 'carl' });
    expect(await check(options, await sign({ ...good, iss: 'https://other' }))).toBeNull();
    expect(await check(options, await sign({ ...good, aud: 'mail' }))).toBeNull();
    expect(await check(options, await sign({ iss: 'https://me' }))).toBeNull();
    expect(await check(options, await sign({ aud: 'chat' }))).toBeNull();
  });

  it('may be late by as much as is tolerated, to the end', async () => {
    const exp = now() - 5;
    const options = { secret: SECRET, clockToleranceSeconds: 30 };
    expect(await check(options, await sign({ exp }))).toMatchObject({
      expiresAt: (exp + 30) * 1000,
    });
    expect(await check(options, await sign({ exp: now() - 31 }))).toBeNull();
  });

  it('can be read in the application’s own way, or refused', async () => {
    const options: JwtAuthOptions = {
      secret: SECRET,
      toUser: ({ uid }) => (typeof uid === 'string' ? { id: `u-${uid}` } : null),
    };
    expect(await check(options, await sign({ uid: '7' }))).toEqual({
      id: 'u-7',
      expiresAt: expect.any(Number),
    });
    expect(await check(options, await sign())).toBeNull();
  });

  it('is good until its own expiry, whatever its other claims are called', async () => {
    const exp = now() + 60;
    for (const expiresAt of [1, 'tomorrow', now() + 60]) {
      expect(await auth(bearing(await sign({ exp, expiresAt })))).toMatchObject({
        expiresAt: exp * 1000,
      });
    }
    expect(await auth(bearing(await sign({ id: 'olga' })))).toMatchObject({ id: 'carl' });
  });
});

describe('keys', () => {
  it('refuses a secret that could be guessed, and no key at all', () => {
    for (const secret of ['', 'short', undefined as never, new Uint8Array(31)]) {
      expect(() => jwtAuth({ secret })).toThrow(TypeError);
    }
    expect(() => jwtAuth({} as JwtAuthOptions)).toThrow(
      'jwtAuth needs one of secret, publicKey and jwks.',
    );
  });

  it('takes a public key as PEM, RS256 unless another algorithm is named', async () => {
    const pem = await exportSPKI(rsa.publicKey);
    const token = await sign({}, rsa.privateKey, 'RS256');
    expect(await check({ publicKey: pem }, token)).toMatchObject({ id: 'carl' });
    const other = await generateKeyPair('RS256');
    expect(await check({ publicKey: pem }, await sign({}, other.privateKey, 'RS256'))).toBeNull();
    const options = { publicKey: await exportSPKI(ec.publicKey), algorithms: ['ES256'] };
    expect(await check(options, await sign({}, ec.privateKey, 'ES256'))).toMatchObject({
      id: 'carl',
    });
    expect(await check(options, token)).toBeNull();
  });

  it('takes a public key as JWK, which may name its algorithm', async () => {
    const jwk = await exportJWK(ec.publicKey);
    const token = await sign({}, ec.privateKey, 'ES256');
    for (const options of [
      { publicKey: { ...jwk, alg: 'ES256' } },
      { publicKey: jwk, algorithms: ['ES256'] },
    ]) {
      expect(await check(options, token)).toMatchObject({ id: 'carl' });
      expect(await check(options, await sign())).toBeNull();
    }
  });

  it('never takes a public key for a shared secret', async () => {
    const pem = await exportSPKI(rsa.publicKey);
    const jwk = await exportJWK(rsa.publicKey);
    const jwks = { keys: [{ ...jwk, kid: 'a', alg: 'RS256' }] };
    const forged = [
      await sign({}, new TextEncoder().encode(pem), 'HS256', { kid: 'a' }),
      await sign({}, new TextEncoder().encode(JSON.stringify(jwk)), 'HS256', { kid: 'a' }),
      await sign({}, new TextEncoder().encode(jwk.n), 'HS256', { kid: 'a' }),
      new UnsecuredJWT({ sub: 'carl' }).encode(),
    ];
    for (const token of forged) {
      expect(await check({ publicKey: pem }, token)).toBeNull();
      expect(await check({ publicKey: jwk }, token)).toBeNull();
      expect(await check({ jwks }, token)).toBeNull();
    }
  });

  it('finds a key in a set by its id', async () => {
    const keys = [
      { ...(await exportJWK(rsa.publicKey)), kid: 'rsa', alg: 'RS256' },
      { ...(await exportJWK(ec.publicKey)), kid: 'ec', alg: 'ES256' },
    ];
    const auth = jwtAuth({ jwks: { keys } });
    const byRsa = await sign({}, rsa.privateKey, 'RS256', { kid: 'rsa' });
    const byEc = await sign({}, ec.privateKey, 'ES256', { kid: 'ec' });
    const stranger = await sign({}, ec.privateKey, 'ES256', { kid: 'gone' });
    const mixed = await sign({}, rsa.privateKey, 'RS256', { kid: 'ec' });
    expect(await auth(bearing(byRsa))).toMatchObject({ id: 'carl' });
    expect(await auth(bearing(byEc))).toMatchObject({ id: 'carl' });
    expect(await auth(bearing(stranger))).toBeNull();
    expect(await auth(bearing(mixed))).toBeNull();
  });
});

describe('a key set at an address', () => {
  const setOf = async (pair: { publicKey: CryptoKey }, kid: string) => ({
    keys: [{ ...(await exportJWK(pair.publicKey)), kid, alg: 'ES256' }],
  });

  it('is fetched once, and what is not in it is nobody', async () => {
    let fetched = 0;
    const server = await serve({
      fetch: async () => {
        fetched++;
        return Response.json(await setOf(ec, 'one'));
      },
    });
    onTestFinished(() => server.close());
    const auth = jwtAuth({ jwks: server.url });
    const token = await sign({}, ec.privateKey, 'ES256', { kid: 'one' });
    expect(await auth(bearing(token))).toMatchObject({ id: 'carl' });
    expect(await auth(bearing(token))).toMatchObject({ id: 'carl' });
    const stranger = await sign({}, ec.privateKey, 'ES256', { kid: 'two' });
    expect(await auth(bearing(stranger))).toBeNull();
    expect(fetched).toBe(1);
  });

  it('may change its keys', async () => {
    const next = await generateKeyPair('ES256');
    let current = await setOf(ec, 'one');
    const server = await serve({ fetch: () => Response.json(current) });
    onTestFinished(() => server.close());
    const auth = jwtAuth({ jwks: new URL(server.url) });
    const exp = now() + 600;
    const old = await sign({ exp }, ec.privateKey, 'ES256', { kid: 'one' });
    expect(await auth(bearing(old))).toMatchObject({ id: 'carl' });
    current = await setOf(next, 'two');
    const fresh = await sign({ exp }, next.privateKey, 'ES256', { kid: 'two' });
    // Strangers must not make us ask for the keys again and again.
    expect(await auth(bearing(fresh))).toBeNull();
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31_000 });
    onTestFinished(() => void vi.useRealTimers());
    expect(await auth(bearing(fresh))).toMatchObject({ id: 'carl' });
    expect(await auth(bearing(old))).toBeNull();
  });

  /** A server of keys that counts what it is asked; 0 is one that is down, 1 one that never answers. */
  async function startKeys(status: number, body = '') {
    const seen = { requests: 0 };
    const server = createServer((_request, response) => {
      seen.requests++;
      if (status > 1) response.writeHead(status).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    if (status === 0) await new Promise((resolve) => server.close(resolve));
    return { seen, jwks: `http://127.0.0.1:${port}/keys?secret` };
  }

  it.each([
    ['is down', 0, '', 'It did not answer.'],
    ['never answers', 1, '', 'It did not answer.'],
    ['answers 500', 500, '', 'It answered 500, without a key set.'],
    ['answers something else', 200, '<html>', 'It answered 200, without a key set.'],
  ])(
    'that %s is asked once for many tokens, which get a 503 with Retry-After',
    async (_, status, body, why) => {
      const { seen, jwks } = await startKeys(status, body);
      const { lines, logger } = createLogSpy();
      const authenticate = jwtAuth({ jwks, jwksTimeoutMs: 50 });
      const carl = createUser(createTestGateway(echo, { authenticate, logger }), undefined);
      for (let n = 0; n < 10; n++) {
        const token = await sign({}, ec.privateKey, 'ES256', { kid: `made up ${n}` });
        const response = await carl.post(chatBody('hi'), {
          headers: { authorization: `Bearer ${token}` },
        });
        expect(response.headers.get('retry-after')).toBe('1');
        expect(await refusal(response)).toMatchObject({ status: 503, code: 'keys-unavailable' });
      }
      expect(seen.requests).toBeLessThanOrEqual(1);
      expect(lines[0]).toMatchObject({
        message: 'request failed',
        details: { error: { code: 'keys-unavailable', cause: { why } } },
      });
      expect(JSON.stringify(lines)).not.toContain('secret');
    },
  );

  it('is fetched once for a hundred tokens with made-up key ids', async () => {
    const { seen, jwks } = await startKeys(200, JSON.stringify(await setOf(ec, 'one')));
    const auth = jwtAuth({ jwks });
    for (let n = 0; n < 100; n++) {
      const token = await sign({}, ec.privateKey, 'ES256', { kid: `made up ${n}` });
      expect(await auth(bearing(token))).toBeNull();
    }
    expect(seen.requests).toBe(1);
  });
});

describe('a key of one kind, with algorithms of several', () => {
  const algorithms = ['RS256', 'ES256'];

  it.each([
    ['PEM', exportSPKI],
    ['JWK', exportJWK],
  ])('(%s) takes tokens of its own; others are nobody’s', async (_, write) => {
    for (const order of [algorithms, algorithms.toReversed()]) {
      const options = { publicKey: await write(ec.publicKey), algorithms: order };
      const auth = jwtAuth(options);
      const foreign = await sign({}, rsa.privateKey, 'RS256');
      expect(await auth(bearing(foreign))).toBeNull();
      const own = await sign({}, ec.privateKey, 'ES256');
      expect(await auth(bearing(own))).toMatchObject({ id: 'carl' });
    }
  });

  it('is a mistake where it fits none of them', async () => {
    const publicKey = await exportSPKI(ec.publicKey);
    const token = await sign({}, rsa.privateKey, 'RS256');
    await expect(check({ publicKey, algorithms: ['RS256'] }, token)).rejects.toThrow();
    expect(() => jwtAuth({ secret: SECRET, algorithms: ['RS256'] })).toThrow(TypeError);
  });

  it('(a secret) is for no token of another kind', async () => {
    const token = await sign({}, rsa.privateKey, 'RS256');
    expect(await check({ secret: SECRET, algorithms: ['HS256', 'RS256'] }, token)).toBeNull();
  });
});

describe('toUser', () => {
  it('gets the token too, to pass on', async () => {
    const token = await sign();
    const toUser = ({ sub = '' }: JWTPayload, given: string) => ({ id: sub, token: given });
    expect(await check({ secret: SECRET, toUser }, token)).toMatchObject({ id: 'carl', token });
  });
});

describe('a cookie', () => {
  const origins = ['https://app.example'];
  const auth = jwtAuth({ secret: SECRET, cookie: { name: 'session', origins } });
  const withCookie = async (headers: Record<string, string>, method = 'GET', name = 'session') =>
    auth(
      ask({ method, headers: { cookie: `theme=dark; ${name}=${await sign()}; x`, ...headers } }),
    );

  it('is taken for an EventSource of an allowed page', async () => {
    const carl = { id: 'carl' };
    expect(await withCookie({ origin: 'https://app.example' })).toMatchObject(carl);
    expect(await withCookie({ origin: 'https://app.example' }, 'POST')).toMatchObject(carl);
  });

  it('is taken on a POST of the server’s own pages', async () => {
    const carl = { id: 'carl' };
    const origin = 'https://proxied.example';
    const pages: Record<string, string>[] = [
      { origin: 'http://gateway.test' },
      { origin, host: 'proxied.example' },
      { origin, 'sec-fetch-site': 'same-origin' },
    ];
    for (const headers of pages) {
      expect(await withCookie(headers, 'POST')).toMatchObject(carl);
    }
    const elsewhere = { origin: 'http://gateway.test', 'sec-fetch-site': 'same-site' };
    expect(await withCookie(elsewhere, 'POST')).toBeNull();
  });

  it('is taken on a GET of the server’s own pages, which names no origin', async () => {
    expect(await withCookie({})).toMatchObject({ id: 'carl' });
    expect(await withCookie({ 'sec-fetch-site': 'same-origin' })).toMatchObject({ id: 'carl' });
    expect(await withCookie({ 'sec-fetch-site': 'same-site' })).toBeNull();
    expect(await withCookie({ 'sec-fetch-site': 'cross-site' })).toBeNull();
    expect(await withCookie({ 'sec-fetch-site': 'none' })).toBeNull();
  });

  it.each([
    ['another page', { origin: 'https://evil.example' }, 'GET'],
    ['another page, from the same site', { origin: 'https://sub.app.example' }, 'GET'],
    ['another scheme', { origin: 'http://app.example' }, 'GET'],
    ['a page that hides', { origin: 'null' }, 'GET'],
    ['another page that sends', { origin: 'https://evil.example' }, 'POST'],
    ['nobody knows where that sends', {}, 'POST'],
    ['a page that sends, without an origin', { 'sec-fetch-site': 'same-origin' }, 'POST'],
  ])('of %s is nobody’s', async (_, headers, method) => {
    expect(await withCookie(headers as Record<string, string>, method)).toBeNull();
  });

  it('counts only under its own name, and only where the option is set', async () => {
    expect(await withCookie({}, 'GET', 'mysession')).toBeNull();
    expect(await withCookie({}, 'GET', 'Session')).toBeNull();
    const cookie = `session=${await sign()}`;
    expect(await jwtAuth({ secret: SECRET })(ask({ headers: { cookie } }))).toBeNull();
  });

  it('gives way to a header, which needs no origin', async () => {
    const authorization = `Bearer ${await sign({ sub: 'olga' })}`;
    const headers = { authorization, origin: 'https://evil.example' };
    expect(await withCookie(headers)).toMatchObject({ id: 'olga' });
  });
});
