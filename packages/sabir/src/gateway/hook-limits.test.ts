import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createLogSpy,
  createTestGateway,
  createUser,
  echo,
  eventually,
  readChunks,
  refusal,
} from '../../test/gateway-client.ts';
import { asUpstream, type ChatGatewayOptions } from './index.ts';

const never = () => new Promise<never>(() => undefined);
const timing = { hookMs: 20, connectMs: 20 };

describe('a hook of the application that never settles', () => {
  it.each<[string, string, Partial<ChatGatewayOptions>]>([
    ['authenticate', '/api/sessions/s1/messages', { authenticate: never }],
    ['access', '/api/sessions/s1/messages', { access: never }],
    ['enabled', '/api/sessions/s1/messages', { enabled: never }],
    ['routes.metrics', '/metrics', { routes: { metrics: never } }],
  ])(
    '%s: the request gets a 503 with Retry-After, a log line and a count',
    async (name, path, options) => {
      const { lines, logger } = createLogSpy();
      const gateway = createTestGateway(echo, { ...options, timing, logger });
      const response = await createUser(gateway, 'carl').send('GET', path);
      expect(response.headers.get('retry-after')).toBe('1');
      expect(await refusal(response)).toMatchObject({
        status: 503,
        code: 'hook-timeout',
        message: `${name} did not answer within 20 ms.`,
      });
      expect(lines.map(({ message }) => message)).toContain('request failed');
      if (name === 'routes.metrics') return;
      const metrics = await createUser(gateway, undefined).metrics();
      expect(metrics[`sabir_hook_timeouts_total{hook="${name}"}`]).toBe(1);
    },
  );

  it('onFinish: the turn ends, its answer is shown in the history again, and close() returns', async () => {
    const { lines, logger } = createLogSpy();
    let stored = '';
    const history = () => (stored ? [{ id: stored, role: 'assistant' as const, parts: [] }] : []);
    const upstream = asUpstream(
      async function* () {
        yield { type: 'text-delta' as const, id: '1', delta: 'hi' };
      },
      { history },
    );
    const onFinish: ChatGatewayOptions['onFinish'] = ({ message }) => {
      stored = message.id;
      return never();
    };
    const gateway = createTestGateway(upstream, { timing, logger, onFinish });
    const carl = createUser(gateway, 'carl');
    await readChunks(await carl.post(chatBody('hi')));
    const line = await eventually(() => lines.find(({ message }) => message === 'onFinish failed'));
    expect(line.details.error).toMatchObject({ code: 'hook-timeout' });
    expect((await carl.metrics())['sabir_hook_timeouts_total{hook="onFinish"}']).toBe(1);
    expect(await (await carl.messages()).json()).toMatchObject([{ id: stored }]);
    await gateway.close();
  });

  it("an agent's history: the request gets a 502", async () => {
    const gateway = createTestGateway(asUpstream(never, { history: never }), { timing });
    const response = await createUser(gateway, 'carl').messages();
    expect(await refusal(response)).toMatchObject({ status: 502, code: 'upstream-unreachable' });
  });
});
