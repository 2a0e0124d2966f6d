/** Attacks by pages in a user's browser, and by tokens. */
import { createServer } from 'node:http';
import { CompactEncrypt, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import { jwtAuth } from '../../src/gateway/index.ts';
import { chatBody, createAgent, echo, openSse, refusal } from '../gateway-client.ts';
import { startAttacked } from './attacked.ts';

const SECRET = 'a secret of at least thirty-two bytes';
const key = new TextEncoder().encode(SECRET);
const soon = () => Math.floor(Date.now() / 1_000) + 60;
const sign = (claims: object = {}, header: object = {}) =>
  new SignJWT({ sub: 'carl', exp: soon(), ...claims } as JWTPayload)
    .setProtectedHeader({ alg: 'HS256', ...header })
    .sign(key);
const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a foreign page', () => {
  it.each(['Basic Y2FybDpwdw==', 'Negotiate abc', 'Digest username="carl"', 'NTLM abc'])(
    'whose post the browser signs by itself with "%s" is refused: 403',
    async (authorization) => {
      const attacked = await startAttacked(echo, { authenticate: () => ({ id: 'carl' }) });
      const carl = attacked.user(undefined);
      const origin = 'https://evil.example';
      const post = (headers: HeadersInit) => carl.post(chatBody('a'), { headers });
      expect(await refusal(await post({ origin, authorization }))).toMatchObject({ status: 403 });
      expect((await post({ authorization })).status).toBe(200);
      expect((await post({ origin, authorization: 'Bearer abc' })).status).toBe(200);
    },
  );
});

describe('a page of another origin', () => {
  const ORIGIN = 'https://app.example';
  const cookie = { name: 'token', origins: [ORIGIN] };

  async function start(cors?: object) {
    const agent = createAgent();
    const attacked = await startAttacked(agent.upstream, {
      authenticate: jwtAuth({ secret: SECRET, cookie }),
      ...(cors && { cors: cors as never }),
    });
    const asPage = async (headers: Record<string, string>) => {
      const sent = { cookie: `token=${await sign()}`, ...headers };
      return attacked.user(undefined).resume('c1', { headers: sent });
    };
    return { ...attacked, agent, asPage };
  }

  it.each<[string, Record<string, string>]>([
    ['another site', { origin: 'https://evil.example' }],
    ['a sandbox', { origin: 'null' }],
    ['an image of another site', { 'sec-fetch-site': 'cross-site' }],
    ['a page of a sister domain', { 'sec-fetch-site': 'same-site' }],
    ['a typed address', { 'sec-fetch-site': 'none' }],
    ['a site that ends alike', { origin: 'https://evil-app.example' }],
    ['a site that begins alike', { origin: 'https://app.example.evil.example' }],
    ['the same host by plain http', { origin: 'http://app.example' }],
    ['another port', { origin: 'https://app.example:444' }],
  ])('cannot read a stream with the cookie of its visitor: %s', async (_, headers) => {
    const { asPage } = await start();
    const response = await asPage(headers);
    expect(response.status).toBe(401);
    expect(response.headers.has('access-control-allow-origin')).toBe(false);
  });

  it('is not allowed credentials by a star, nor by being null', async () => {
    const { asPage } = await start({ origins: '*', credentials: true });
    for (const origin of ['https://evil.example', 'null']) {
      const { headers } = await asPage({ origin });
      expect(headers.has('access-control-allow-credentials')).toBe(false);
    }
  });

  it('that is not listed is told so by no header, and caches are told to tell origins apart', async () => {
    const { asPage } = await start({ origins: [ORIGIN], credentials: true });
    const { headers } = await asPage({ origin: 'https://evil.example' });
    expect(headers.get('vary')).toBe('origin');
    expect(headers.has('access-control-allow-origin')).toBe(false);
    const own = await asPage({ origin: ORIGIN });
    expect(own.headers.get('access-control-allow-origin')).toBe(ORIGIN);
  });

  it('does not get a cookie in under another name', async () => {
    const { user } = await start();
    const token = await sign();
    for (const cookies of [
      `xtoken=${token}`,
      `token2=${token}`,
      `a=token=${token}`,
      `TOKEN=${token}`,
    ]) {
      const response = await user(undefined).resume('c1', { headers: { cookie: cookies } });
      expect(response.status).toBe(401);
    }
  });
});

describe('a token', () => {
  async function start(options: Parameters<typeof jwtAuth>[0] = { secret: SECRET }) {
    const agent = createAgent();
    const attacked = await startAttacked(agent.upstream, { authenticate: jwtAuth(options) });
    const statusOf = async (token: string, headers: Record<string, string> = {}) => {
      const authorization = `Bearer ${token}`;
      const init = { headers: { authorization, ...headers } };
      return (await attacked.user(undefined).resume('c1', init)).status;
    };
    return { ...attacked, agent, statusOf };
  }

  it('that is forged, for later, malformed or not a signature is nobody’s: 401, never 500', async () => {
    const { statusOf, user } = await start();
    const good = await sign();
    const [head, payload, signature] = good.split('.') as [string, string, string];
    const { publicKey } = await generateKeyPair('RSA-OAEP-256');
    const encrypted = await new CompactEncrypt(Buffer.from('{"sub":"carl"}'))
      .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM' })
      .encrypt(publicKey);
    const jwk = { kty: 'oct', k: Buffer.from('mine').toString('base64url') };
    const bad = [
      `${base64({ alg: 'none' })}.${payload}.`,
      `${base64({ alg: 'nOnE' })}.${payload}.${signature}`,
      `${base64({ alg: 'HS256', jwk })}.${payload}.${signature}`,
      `${base64({ alg: 'HS256', crit: ['x'], x: 1 })}.${payload}.${signature}`,
      `${base64({ alg: ['HS256'] })}.${payload}.${signature}`,
      `${base64({ alg: { toString: 'HS256' } })}.${payload}.${signature}`,
      `${base64({})}.${payload}.${signature}`,
      `${head}.${base64({ sub: 'olga', exp: soon() })}.${signature}`,
      `${head}.${payload}.`,
      `${head}.${payload}`,
      `${head}.${payload}.${signature}.x`,
      `${head}..${signature}`,
      '..',
      '....',
      `${'['.repeat(3_000)}.a.b`,
      `${Buffer.from('['.repeat(2_000)).toString('base64url')}.a.b`,
      encrypted,
      await sign({ nbf: soon() + 10 ** 9 }),
      await sign({ exp: soon() - 1_000 }),
      await sign({ sub: 7 }),
      await sign({ sub: ['carl'] }),
      await sign({ sub: '' }),
      await sign({}, { b64: false, crit: ['b64'] }).catch(() => 'x.y.z'),
    ];
    for (const token of bad) expect([token, await statusOf(token)]).toEqual([token, 401]);
    expect(await statusOf(good)).toBe(204);
    for (const query of [`token=${good}`, `access_token=${good}`]) {
      expect((await user(undefined).resume('c1', { query })).status).toBe(401);
    }
    expect(await statusOf(`${good} ${good}`)).toBe(401);
    expect(await statusOf(`${good}, Bearer ${good}`)).toBe(401);
  });

  it('good for longer than timers count does not end its stream at once', async () => {
    const { agent, user } = await start();
    const authorization = `Bearer ${await sign({ exp: 8_640_000_000_000 })}`;
    const sse = openSse(await user(undefined).post(chatBody('a'), { headers: { authorization } }));
    const run = await agent.run();
    run.text('still here');
    await new Promise((resolve) => setTimeout(resolve, 20));
    run.end();
    await sse.ended;
    expect(sse.text()).toBe('still here');
    expect(sse.raw()).not.toContain('"type":"error"');
  });

  it('that has run out during a stream does not resume it', async () => {
    const { agent, user } = await start();
    const exp = Math.floor(Date.now() / 1_000) + 2;
    const headers = { authorization: `Bearer ${await sign({ exp })}`, 'x-sabir-resume': '0' };
    const sse = openSse(await user(undefined).post(chatBody('a'), { headers }));
    (await agent.run()).delta('x');
    await sse.ended;
    expect(Date.now()).toBeGreaterThanOrEqual(exp * 1_000);
    const cursor = sse.frames.at(-1)?.id ?? '';
    expect((await user(undefined).resumeAt(cursor, 'c1', { headers })).status).toBe(401);
  });

  it('whose key set answers with a redirect is not checked by the keys that it leads to', async () => {
    const mine = await generateKeyPair('ES256');
    const jwk = { ...(await exportJWK(mine.publicKey)), kid: 'k', alg: 'ES256' };
    let asked = 0;
    const server = createServer((request, response) => {
      if (request.url === '/mine') {
        asked++;
        response.end(JSON.stringify({ keys: [jwk] }));
      } else response.writeHead(302, { location: '/mine' }).end();
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const { statusOf } = await start({ jwks: `http://127.0.0.1:${port}/keys` });
    const token = await new SignJWT({ sub: 'carl', exp: soon() })
      .setProtectedHeader({ alg: 'ES256', kid: 'k', jku: `http://127.0.0.1:${port}/mine`, jwk })
      .sign(mine.privateKey);
    expect(await statusOf(token)).toBe(503);
    expect(asked).toBe(0);
  });

  it('with a key id like a path, a property or a command is nobody’s', async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256');
    const keys = [{ ...(await exportJWK(publicKey)), kid: 'real', alg: 'ES256' }];
    const { statusOf } = await start({ jwks: { keys } });
    for (const kid of ['../../etc/passwd', '__proto__', "' OR 1=1", 'x'.repeat(4_000), '']) {
      const other = await generateKeyPair('ES256');
      const token = await new SignJWT({ sub: 'carl', exp: soon() })
        .setProtectedHeader({ alg: 'ES256', kid })
        .sign(other.privateKey);
      expect(await statusOf(token)).toBe(401);
    }
    const real = new SignJWT({ sub: 'carl', exp: soon() });
    real.setProtectedHeader({ alg: 'ES256', kid: 'real' });
    expect(await statusOf(await real.sign(privateKey))).toBe(204);
  });
});
