import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { AI_SDK_7, callTool, say } from '../../test/ai-sdk-models.ts';
import { type ApprovalClient, createApprovalClient, listen } from '../../test/approval-agent.ts';
import {
  chatBody,
  createLogSpy,
  createTestGateway,
  createUser,
  eventually,
  openSse,
} from '../../test/gateway-client.ts';
import { startHosted } from '../../test/hosted-gateway.ts';
import type { ClientName } from '../../test/real-clients.ts';
import type { UIMessage } from '../core/message.ts';
import { sqliteSessionStore } from '../platforms/node/sessions.ts';
import { scriptedAgent } from '../sessions/scripted-agent.ts';
import { aiSdkAgent } from '../sources/ai-sdk/agent.ts';
import type { Agent } from '../turns/agent.ts';
import { asUpstream, type ChatGateway, type ChatGatewayOptions } from './index.ts';

const NAMES: ClientName[] = ['ai@6.0.9', 'ai@6', 'ai@7'];

type Started = { gateway: ChatGateway; finished: UIMessage[] };
type Start = (agent: Agent, options?: Partial<ChatGatewayOptions>) => Started;

function startInSession(agent: Agent, options: Partial<ChatGatewayOptions> = {}): Started {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-approvals-'));
  const store = sqliteSessionStore({ file: join(folder, 'sabir.db') });
  const { gateway, finished } = startHosted({
    sessions: { store, agent: () => agent },
    gateway: options,
  });
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return {
    gateway,
    get finished() {
      return finished.map(({ message }) => message);
    },
  };
}

function startBehindGateway(agent: Agent, options: Partial<ChatGatewayOptions> = {}): Started {
  const finished: UIMessage[] = [];
  const onFinish = ({ message }: { message: UIMessage }) => void finished.push(message);
  return { gateway: createTestGateway(asUpstream(agent), { onFinish, ...options }), finished };
}

const PLACES: [string, Start][] = [
  ['a session on SQLite', startInSession],
  ['asUpstream', startBehindGateway],
];

const pilot = () => scriptedAgent({ speed: 0 });

/** A model of the AI SDK with a tool that needs approval. */
function payer(calls = [callTool('c1', 'pay', { eur: 5 })]) {
  const paid: number[] = [];
  const { model } = AI_SDK_7.model([calls.flat(), say('Done.')]);
  const pay = {
    inputSchema: z.object({ eur: z.number() }),
    needsApproval: true,
    execute({ eur }: { eur: number }) {
      paid.push(eur);
      return `paid ${eur}`;
    },
  };
  return { agent: aiSdkAgent({ ai: AI_SDK_7.ai, model, tools: { pay } }), paid };
}

async function open(name: ClientName, gateway: ChatGateway, more?: { saysMajor: boolean }) {
  const url = await listen(gateway);
  return createApprovalClient(name, () => url, more);
}

const approvalOf = (client: ApprovalClient) =>
  client.tools().find(({ state }) => state === 'approval-requested')?.approval?.id as string;

const isReady = (client: ApprovalClient) => client.result().status === 'ready';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(PLACES)('an approval through %s', (_, start) => {
  describe.each(NAMES)('answered by %s', (name) => {
    it.each([
      [true, 'output-available', 'We are under way. Fair winds!'],
      [false, 'output-error', 'Then we wait for the evening breeze.'],
    ])('ends its response and goes on in the same message: %s', async (approved, state, words) => {
      const started = start(pilot());
      const client = await open(name, started.gateway);
      await client.chat.sendMessage({ text: 'Cast off' });
      expect(client.result()).toMatchObject({ status: 'ready', error: undefined });
      expect(client.tools()).toMatchObject([{ state: 'approval-requested' }]);
      const { id } = client.result().message as UIMessage;
      await client.approve(approvalOf(client), approved);
      await eventually(() => started.finished[0] && isReady(client), 'its end');
      expect(client.tools()).toMatchObject([{ state, providerExecuted: true }]);
      expect(client.text()).toContain(words);
      expect(client.result().messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
      expect([client.result().message?.id, started.finished[0]?.id]).toEqual([id, id]);
      expect(client.result().error).toBeUndefined();
      expect(client.posts()).toBe(2);
    });

    it.each([true, false])('reaches a tool with needsApproval: %s', async (approved) => {
      const { agent, paid } = payer();
      const started = start(agent);
      const client = await open(name, started.gateway);
      await client.chat.sendMessage({ text: 'Pay' });
      expect(client.tools()).toMatchObject([{ state: 'approval-requested' }]);
      await client.approve(approvalOf(client), approved, approved ? undefined : 'Too much.');
      await eventually(() => started.finished[0] && isReady(client), 'its end');
      expect(paid).toEqual(approved ? [5] : []);
      expect(client.tools()).toMatchObject([
        approved ? { output: 'paid 5' } : { state: 'output-error', errorText: 'Too much.' },
      ]);
      expect(client.text()).toBe('Done.');
      expect(client.posts()).toBe(2);
    });

    it('is answered after a reload', async () => {
      const started = start(pilot());
      await (await open(name, started.gateway)).chat.sendMessage({ text: 'Cast off' });
      const client = await open(name, started.gateway);
      await client.chat.resumeStream();
      expect(isReady(client)).toBe(true);
      await client.approve(approvalOf(client));
      await eventually(() => started.finished[0] && isReady(client), 'its end');
      expect(client.text()).toContain('We are under way.');
      expect(client.tools()).toMatchObject([{ state: 'output-available' }]);
    });
  });

  it('asks about two calls of one step in one response', async () => {
    const calls = [callTool('c1', 'pay', { eur: 5 }), callTool('c2', 'pay', { eur: 6 })];
    const { agent, paid } = payer(calls);
    const started = start(agent);
    const client = await open('ai@7', started.gateway);
    await client.chat.sendMessage({ text: 'Pay' });
    await client.approve(approvalOf(client));
    await client.approve(approvalOf(client), false);
    await eventually(() => started.finished[0] && isReady(client), 'its end');
    expect([paid, client.posts()]).toEqual([[5], 2]);
  });

  it('has one answer for clients of all versions: the first one', async () => {
    const started = start(pilot());
    const asker = await open('ai@7', started.gateway);
    await asker.chat.sendMessage({ text: 'Cast off' });
    const old = await open('ai@5', started.gateway);
    const watching = old.chat.resumeStream();
    const six = await open('ai@6', started.gateway);
    await six.chat.resumeStream();
    const cora = createUser(started.gateway, 'cora');
    const contract = openSse(await cora.resume('c1', { query: 'wire=contract' }));
    const id = approvalOf(asker);
    expect((await cora.answer(id, 'Not yet')).status).toBe(202);
    await eventually(() => started.finished[0], 'its end');
    await Promise.all([watching, contract.ended]);
    for (const client of [asker, six]) await client.approve(id);
    for (const client of [asker, six, old]) {
      await eventually(() => isReady(client) && client.text().includes('evening'), 'its end');
      expect(client.result().error).toBeUndefined();
      expect(client.tools()).toMatchObject([{ state: 'output-error' }]);
    }
    expect(contract.frames.at(-1)?.event).toBe('done');
  });

  it.each([0, 30])('keeps its turn when all tabs close: %i ms of grace', async (ms) => {
    const started = start(pilot(), { timing: { disconnectGraceMs: ms } });
    const carl = createUser(started.gateway, 'carl');
    const sse = openSse(await carl.post(chatBody('Cast off')));
    await sse.until(() => sse.raw().includes('May I cast off'));
    const [asked] = sse.chunks().filter(({ type }) => type === 'data-question');
    await sse.leave();
    await pause(150);
    expect(started.finished).toEqual([]);
    const client = await open('ai@6', started.gateway);
    await client.chat.resumeStream();
    expect(approvalOf(client)).toBe((asked as { id: string }).id);
    await client.approve(approvalOf(client));
    await eventually(() => started.finished[0] && isReady(client), 'its end');
    expect(client.text()).toContain('We are under way.');
  });

  it('ends with its time, also for a client that answers later', async () => {
    const hurried: Agent = {
      ...pilot(),
      prompt: (prompt) =>
        pilot().prompt({ ...prompt, ask: (one) => prompt.ask({ ...one, expiresInMs: 60 }) }),
    };
    const started = start(hurried, { timing: { idleMs: 40 } });
    const client = await open('ai@6', started.gateway);
    await client.chat.sendMessage({ text: 'Cast off' });
    const id = approvalOf(client);
    await eventually(() => started.finished[0], 'its end');
    await client.approve(id);
    await eventually(() => client.posts() === 2 && isReady(client), 'the rest');
    expect(client.tools()).toMatchObject([{ state: 'output-error' }]);
    expect(client.text()).toContain('so we stay');
  });

  it('is a question for a client that has not said its version, and the log says so once', async () => {
    const { lines, logger } = createLogSpy();
    const started = start(pilot(), { logger });
    const client = await open('ai@7', started.gateway, { saysMajor: false });
    const other = await open('ai@6', started.gateway, { saysMajor: false });
    const sent = client.chat.sendMessage({ text: 'Cast off' });
    await eventually(() => client.tools().length > 0, 'the call');
    const watched = other.chat.resumeStream();
    await eventually(() => other.tools().length > 0, 'the call');
    await pause(20);
    expect(client.tools()).toMatchObject([{ state: 'input-available' }]);
    const warnings = lines.filter(({ level }) => level === 'warn');
    expect(warnings.map(({ message }) => message)).toEqual([expect.stringContaining('?aiSdk=6')]);
    const parts = client.result().message?.parts as { type: string; id?: string }[];
    const { id } = parts.find(({ type }) => type === 'data-question') as { id: string };
    await createUser(started.gateway, 'carl').answer(id, 'Cast off');
    await Promise.all([sent, watched]);
    expect(client.text()).toContain('We are under way.');
  });

  it('is logged for no client of ours, which answers questions by itself', async () => {
    const { lines, logger } = createLogSpy();
    const { gateway } = start(pilot(), { logger });
    const carl = createUser(gateway, 'carl');
    const headers = { 'x-sabir-resume': '0' };
    const sse = openSse(await carl.post(chatBody('Cast off'), { headers }));
    const isAsked = () => sse.chunks().find(({ type }) => type === 'data-question');
    const { id } = (await eventually(isAsked, 'the question')) as { id: string };
    await carl.answer(id, 'Cast off');
    await sse.ended;
    expect(lines.filter(({ level }) => level === 'warn')).toEqual([]);
  });

  it('is an approval for 6.0.9, which names its version in its user agent', async () => {
    const started = start(pilot());
    const client = await open('ai@6.0.9', started.gateway, { saysMajor: false });
    await client.chat.sendMessage({ text: 'Cast off' });
    expect(client.tools()).toMatchObject([{ state: 'approval-requested' }]);
  });
});
