/** Who may answer a question of a session, and as whom the gateway in the same process asks. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { chatBody, openSse } from '../../../test/gateway-client.ts';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import { joinSession } from '../../../test/session-chain.ts';
import type { Role } from '../../gateway/index.ts';
import { type Agent, memorySessionStore } from '../../sessions/index.ts';
import { approveCalls } from '../../sources/ai-sdk/approve-calls.ts';
import { type SessionStackOptions, startSessionStack } from './sessions.ts';

const ROLES: Record<string, Role> = { vera: 'viewer', carl: 'collaborator', olga: 'owner' };
const WAIT = { timeout: 10_000, interval: 5 };

async function start(options: Partial<SessionStackOptions> = {}) {
  const roles = { ...ROLES };
  const stack = await startSessionStack({
    store: memorySessionStore(),
    agent: () => scriptedAgent(),
    authenticate: ({ headers }) => {
      const id = headers.get('authorization')?.replace('Bearer ', '');
      return id ? { id } : null;
    },
    access: ({ id }) => roles[id] ?? null,
    shutdownMs: 0,
    ...options,
  });
  onTestFinished(() => stack.close());
  const call = (path: string, user: string, body?: object) =>
    fetch(`${stack.url}/api/sessions/s/${path}`, {
      headers: { authorization: `Bearer ${user}` },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
  const ask = async (text: string, user = 'carl') =>
    openSse(await call('chat', user, chatBody(text, { id: 'c' })));
  const answer = (user: string, questionId: string, given: unknown) =>
    call('chat/c/answer', user, { questionId, answer: given });
  return { stack, roles, call, ask, answer };
}

/** Asks about a refund that only an owner may approve. */
const refundAgent: Agent = {
  name: 'refund',
  async *prompt({ ask }) {
    const text = 'Refund 900?';
    const given = await ask({ text, questionId: 'q', answerBy: { role: 'owner' } });
    yield {
      type: 'text-delta',
      delta: given.status === 'answered' ? `Said ${given.answer}` : 'Late',
    };
  },
};

/** The same, asked for on a tool call by a source that says who may approve it. */
const approvalAgent = (isQuestionFirst: boolean): Agent => ({
  name: 'refund',
  prompt: (prompt) =>
    approveCalls(prompt, async function* ({ approvals: [approval] }) {
      if (approval) {
        yield { type: 'text-delta', id: 't', delta: `Said ${approval.approved}` };
        return;
      }
      const toolCallId = 'call';
      const data = { questionId: 'q', text: '', toolCallId, answerBy: { role: 'owner' } };
      const question = { type: 'data-question', id: 'q', data } as const;
      const request = { type: 'tool-approval-request', approvalId: 'q', toolCallId } as const;
      yield { type: 'tool-input-available', toolCallId, toolName: 'refund', input: {} };
      yield* isQuestionFirst ? [question, request] : [request, question];
    }),
});

const questionOf = (chunks: object[]) =>
  chunks.findLast((chunk) => Object(chunk).type === 'data-question') as
    | { id: string; data: { answerBy?: unknown } }
    | undefined;

describe('a question for owners in a session', () => {
  it.each([
    ['an agent', refundAgent],
    ['an approval whose question comes first', approvalAgent(true)],
    ['an approval whose request comes first', approvalAgent(false)],
  ])('of %s is not answered by a collaborator, over HTTP or on the socket', async (_, agent) => {
    const { stack, ask, answer } = await start({ agent: () => agent });
    const sse = await ask('refund');
    await sse.until(() => questionOf(sse.chunks()) !== undefined);
    const { id = '', data } = questionOf(sse.chunks()) ?? {};
    expect(data?.answerBy).toEqual({ role: 'owner' });
    expect((await answer('carl', id, true)).status).toBe(403);
    const carl = await joinSession(stack, { user: 'carl' });
    expect(carl.events[0]).toMatchObject({
      data: { questions: [{ questionId: id, answerBy: { role: 'owner' } }] },
    });
    carl.send({ type: 'answer', questionId: id, answer: true });
    carl.send({
      type: 'answer',
      questionId: id,
      answer: true,
      by: { userId: 'olga', role: 'owner' },
    });
    await vi.waitFor(() => expect(carl.of('error')).toHaveLength(2), WAIT);
    expect(carl.of('error').map(({ code }) => code)).toEqual(['may-not-answer', 'may-not-answer']);
    // An owner may, in the turn of another: the gateway says who answers.
    expect((await answer('olga', id, true)).status).toBe(202);
    await sse.ended;
    expect(sse.text()).toContain('Said true');
  });

  it('is answered by an owner on the socket', async () => {
    const { stack, ask } = await start({ agent: () => refundAgent });
    const sse = await ask('refund');
    await sse.until(() => questionOf(sse.chunks()) !== undefined);
    const olga = await joinSession(stack, { user: 'olga' });
    olga.send({ type: 'answer', questionId: 'q', answer: 'yes' });
    await sse.ended;
    expect(sse.text()).toBe('Said yes');
  });
});

describe('a turn that a gateway asks its session for', () => {
  it('goes on when the sign-in of the person who asked expires', async () => {
    const agent = scriptedAgent();
    let expiresAt: number | undefined = Date.now() + 150;
    const { call, ask } = await start({
      agent: () => agent,
      authenticate: () => ({ id: 'carl', ...(expiresAt !== undefined && { expiresAt }) }),
    });
    const sse = await ask('slow');
    // The viewer's own stream ends with the sign-in.
    await sse.ended;
    expect(sse.chunks().some(({ type }) => type === 'error')).toBe(true);
    expiresAt = undefined;
    const again = openSse(await call('chat/c/stream', 'carl'));
    agent.go();
    await again.ended;
    expect(again.text()).toBe('Half and whole.');
  });

  it('is asked for with the role that the person has now, not with an earlier one', async () => {
    const { roles, call, ask } = await start();
    roles.olga = 'viewer';
    expect((await call('messages', 'olga')).status).toBe(200);
    roles.olga = 'owner';
    const sse = await ask('text', 'olga');
    await sse.ended;
    expect(sse.text()).toBe('Hello, world!');
  });

  it('asks access once: the session does not ask what the gateway has asked', async () => {
    const access = vi.fn(() => 'owner' as const);
    const { ask } = await start({ access });
    await (await ask('text')).ended;
    expect(access).toHaveBeenCalledTimes(1);
  });
});
