import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createLogSpy,
  createTestGateway,
  createUser,
  echo,
  refusal,
} from '../../test/gateway-client.ts';
import type { ChatGatewayOptions } from './index.ts';

const EVIL = 'https://evil.example';
const APP = 'https://app.example';

/** Goes by a cookie, as somebody's own `authenticate` may. */
function createVisitor(options: Partial<ChatGatewayOptions> = {}) {
  const authenticate = ({ headers }: Request) =>
    headers.get('cookie') || headers.get('authorization') ? { id: 'carl' } : null;
  const user = createUser(createTestGateway(echo, { authenticate, ...options }), undefined);
  return (headers: Record<string, string>) =>
    user.post(chatBody('hi'), { headers: { cookie: 'session=carl', ...headers } });
}

describe('a post with a cookie', () => {
  it.each([
    ['a foreign page', { origin: EVIL }],
    ['a page that hides', { origin: 'null' }],
    [
      'a page of another scheme, as the browser tells',
      {
        origin: 'https://gateway.test',
        'sec-fetch-site': 'cross-site',
      },
    ],
  ])('of %s is refused: 403', async (_, headers) => {
    const post = createVisitor();
    expect(await refusal(await post(headers))).toMatchObject({
      status: 403,
      code: 'origin-refused',
    });
  });

  it.each<[string, Record<string, string>]>([
    ['no page', {}],
    ['the server’s own page', { origin: 'http://gateway.test' }],
    ['its own page, behind a proxy that ends TLS', { origin: 'https://gateway.test' }],
    ['its own page, by the host it was asked by', { origin: APP, host: 'app.example' }],
    ['its own page, as the browser tells', { origin: APP, 'sec-fetch-site': 'same-origin' }],
    ['any page that has a token', { origin: EVIL, authorization: 'Bearer carl' }],
  ])('of %s is taken', async (_, headers) => {
    expect((await createVisitor()(headers)).status).toBe(200);
  });

  it('is taken of a page that CORS names, not of everybody that a star lets in', async () => {
    const named = createVisitor({ cors: { origins: [APP], credentials: true } });
    expect((await named({ origin: APP })).status).toBe(200);
    expect((await named({ origin: EVIL })).status).toBe(403);
    const star = createVisitor({ cors: { origins: '*' } });
    expect((await star({ origin: EVIL })).status).toBe(403);
  });

  it('is no concern where there is no cookie either and a star lets everybody in', async () => {
    const gateway = createTestGateway(echo, {
      cors: { origins: '*' },
      authenticate: ({ headers }) => (headers.get('x-key') ? { id: 'carl' } : null),
    });
    const headers = { origin: EVIL, 'x-key': 'carl' };
    const response = await createUser(gateway, undefined).post(chatBody('hi'), { headers });
    expect(response.status).toBe(200);
  });
});

describe('a user', () => {
  it.each([undefined, null, '', 7])('whose id is %j is a mistake: 500', async (id) => {
    const { lines, logger } = createLogSpy();
    const authenticate = () => ({ id, name: 'Carl' }) as unknown as { id: string };
    const gateway = createTestGateway(echo, { authenticate, access: () => 'owner', logger });
    const response = await createUser(gateway, undefined).post(chatBody('hi'));
    expect(await refusal(response)).toMatchObject({ status: 500, code: 'internal-error' });
    const failed = lines.find(({ message }) => message === 'request failed');
    expect(failed?.details.error).toMatchObject({
      message: 'authenticate gave a user whose id is not a well-formed string, or empty.',
    });
  });
});
