import { describe, expect, it, vi } from 'vitest';
import { CHAT_ID, contractBody, createContractUser } from '../../test/contract-client.ts';
import {
  chatBody,
  createLogSpy,
  createTestGateway,
  createUser,
  echo,
  eventually,
  openSse,
} from '../../test/gateway-client.ts';
import type { AuditEvent } from '../core/audit.ts';
import { asUpstream, type ChatGatewayOptions } from './index.ts';

const SECRET = 'a secret in the text';

/** Asks an owner for an approval, and waits. */
const asking = asUpstream(async function* ({ answer }) {
  const data = { questionId: 'q1', status: 'open', answerBy: { role: 'owner' } };
  yield { type: 'data-question', id: 'q1', data };
  await answer('q1');
});

function start(options: Partial<ChatGatewayOptions> = {}) {
  const events: AuditEvent[] = [];
  const gateway = createTestGateway(asking, { onAudit: (event) => events.push(event), ...options });
  const [olga, carl, vera] = ['olga', 'carl', 'vera'].map((name) => createUser(gateway, name));
  return { events, gateway, olga, carl, vera } as Required<Parties>;
}
type Client = ReturnType<typeof createUser>;
type Parties = {
  events: AuditEvent[];
  gateway: ReturnType<typeof createTestGateway>;
  olga: Client;
  carl: Client;
  vera: Client;
};

describe('onAudit', () => {
  it('gets who prompted, answered and stopped, and whom it was refused: ids, no content', async () => {
    const { events, olga, carl, vera } = start();
    const response = await carl.post(chatBody(SECRET));
    const turnId = response.headers.get('x-sabir-turn');
    const sse = openSse(response);
    await sse.until(() => sse.chunks().some(({ type }) => type === 'data-question'));
    expect((await vera.answer('q1', true)).status).toBe(404);
    expect((await carl.answer('q1', { approved: true, reason: SECRET })).status).toBe(403);
    expect((await olga.answer('q1', { approved: true, reason: SECRET })).status).toBe(202);
    await sse.ended;
    expect((await olga.answer('q1', false)).status).toBe(409);
    const next = openSse(await carl.post(chatBody('again')));
    await next.until(() => next.chunks().length > 0);
    expect((await vera.stop()).status).toBe(404);
    expect((await vera.post(chatBody('hi'))).status).toBe(404);
    expect((await carl.stop()).status).toBe(202);
    const chat = { sessionId: 's1', chatId: 'c1', via: 'http' };
    const ids = { at: expect.any(Number), requestId: expect.any(String) };
    const carls = { ...chat, ...ids, userId: 'carl', role: 'collaborator' };
    const veras = { ...chat, ...ids, userId: 'vera', role: 'viewer', outcome: 'refused' };
    const olgas = { ...chat, ...ids, userId: 'olga', role: 'owner', action: 'answer' };
    const yes = { questionId: 'q1', approved: true };
    const { chatId: _, ...verasPrompt } = veras;
    expect(events).toEqual([
      { ...carls, action: 'prompt', outcome: 'accepted', turnId },
      { ...veras, action: 'answer', code: 'not-found' },
      { ...carls, action: 'answer', outcome: 'refused', code: 'may-not-answer', ...yes },
      { ...olgas, outcome: 'accepted', ...yes },
      {
        ...olgas,
        outcome: 'refused',
        code: 'question-answered',
        questionId: 'q1',
        approved: false,
      },
      { ...carls, action: 'prompt', outcome: 'accepted', turnId: expect.any(String) },
      { ...veras, action: 'stop', code: 'not-found' },
      { ...verasPrompt, action: 'prompt', code: 'not-found' },
      { ...carls, action: 'stop', outcome: 'accepted', turnId: expect.any(String) },
    ]);
    expect(JSON.stringify(events)).not.toContain(SECRET);
  });

  it('gets prompts that a limit refused, and no secret id of a public chat', async () => {
    const { events, gateway } = start({
      routes: { onboarding: { public: true } },
      limits: { liveTurnsPerAddress: 1 },
    });
    const anybody = createContractUser(gateway, undefined, 'onboarding');
    await anybody.post(contractBody('hi'));
    await anybody.post(contractBody('more'));
    expect(events.map(({ outcome, code, userId }) => [outcome, code, userId])).toEqual([
      ['accepted', undefined, 'public'],
      ['refused', 'too-many-turns', 'public'],
    ]);
    expect(JSON.stringify(events)).not.toContain(CHAT_ID);
  });

  it('that throws, rejects or never ends changes nothing', async () => {
    for (const onAudit of [
      () => {
        throw new Error('broken');
      },
      () => Promise.reject(new Error('broken')),
      () => new Promise(() => undefined),
    ]) {
      const hook = vi.fn(onAudit);
      const { lines, logger } = createLogSpy();
      const gateway = createTestGateway(echo, { onAudit: hook, logger });
      const sse = openSse(await createUser(gateway, 'carl').post(chatBody('hi')));
      await sse.ended;
      expect(sse.text()).toBe('You said hi');
      expect(hook).toHaveBeenCalledOnce();
      const isEndless = hook.mock.results[0]?.value instanceof Promise;
      if (!isEndless)
        await eventually(() => lines.some((line) => line.message === 'onAudit failed'));
    }
  });
});
