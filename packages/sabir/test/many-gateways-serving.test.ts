/** One turn, any gateway: whoever comes back, and wherever, sees the same. */
import { describe, expect, it } from 'vitest';
import { foldChunks } from '../src/core/fold.ts';
import type { UIMessage } from '../src/core/message.ts';
import { contractBody, createContractUser, openEvents } from './contract-client.ts';
import { chatBody, createUser, openSse, readChunks } from './gateway-client.ts';
import { createLedAgent } from './led-agent.ts';
import {
  type GatewayBox,
  inTurn,
  openChat,
  startFleet,
  tellingOf,
  textOf,
  useRedis,
} from './many-gateways.ts';
import { CLIENTS } from './real-clients.ts';
import { IF_REDIS, until } from './redis-gateways.ts';
import { hasRedis } from './redis-server.ts';

describe.skipIf(!hasRedis)(`gateways without sticky sessions${IF_REDIS}`, () => {
  const redis = useRedis();

  async function start(options: Parameters<typeof startFleet>[1] = {}) {
    const agent = createLedAgent();
    const fleet = await startFleet(redis(), { agent, ...options });
    const at = (box: GatewayBox, user = 'carl') => createUser(box.remote, user);
    return { ...fleet, agent, at };
  }

  it('show whoever resumes anywhere what whoever sent sees [GWS-01]', async () => {
    const { A, B, C, agent, finishes } = await start();
    const sender = await openChat('ai@7', () => A);
    const sent = sender.chat.sendMessage({ text: 'go' });
    const run = await agent.run();
    run.say({ type: 'reasoning-delta', delta: 'Let me see. ' });
    run.text('One ', 'two ');
    await until('it is seen', () => sender.text().includes('two'));
    const resumed = await Promise.all(
      CLIENTS.flatMap(({ name }) => [openChat(name, () => B), openChat(name, () => C)]),
    );
    const resuming = resumed.map(({ chat }) => chat.resumeStream());
    await until('all see it', () => resumed.every((chat) => chat.text().includes('two')));
    const toolCallId = 'k';
    const input = { port: 'Oran' };
    run.say({ type: 'tool-input-available', toolCallId, toolName: 'lookup', input });
    run.say({ type: 'tool-output-available', toolCallId, output: 3 });
    run.text('three.');
    run.end();
    await Promise.all([sent, ...resuming]);
    await until('it is stored', () => finishes.length > 0);
    const [stored] = finishes;
    for (const { result, requests } of [sender, ...resumed]) {
      const { status, error, message } = result();
      expect([status, error]).toEqual(['ready', undefined]);
      expect(tellingOf(message)).toEqual(tellingOf(stored?.message));
      expect(requests).toHaveLength(1);
    }
    expect(textOf(stored?.message)).toBe('Let me see. One two three.');
    expect(finishes.map(({ at }) => at)).toEqual(['A']);
    expect(agent.runs).toHaveLength(1);
  });

  it('send the same bytes, live and replayed from any cursor', async () => {
    const { A, B, C, agent, at } = await start();
    const first = openSse(await at(A).post(chatBody('go')));
    const run = await agent.run();
    for (let delta = 0; delta < 20; delta++) {
      run.text(`${delta} `);
      await first.until(() => first.text().endsWith(`${delta} `));
    }
    const live = openSse(await at(B).resume());
    await live.until(() => live.text().includes('19 '));
    run.text('end');
    run.end();
    await Promise.all([first.ended, live.ended]);
    const dataOf = ({ frames }: typeof first) => frames.map(({ data }) => data);
    for (const from of [0, 1, 7, first.frames.length - 3]) {
      const cursor = first.frames[from]?.id ?? '';
      for (const box of [A, B, C]) {
        const rest = openSse(await at(box).resumeAt(cursor));
        await rest.ended;
        const seen = foldChunks(first.chunks().slice(0, from + 1));
        const whole = foldChunks([...first.chunks().slice(0, from + 1), ...rest.chunks()]);
        expect(whole).toEqual(foldChunks(first.chunks()));
        expect(textOf(whole).startsWith(textOf(seen))).toBe(true);
        expect(rest.frames.at(-2)?.id).toBe(first.frames.at(-2)?.id);
      }
    }
    expect(foldChunks(live.chunks())).toEqual(foldChunks(first.chunks()));
    expect(dataOf(live).slice(-4)).toEqual(dataOf(first).slice(-4));
  });

  it('take up a transport of ours at its cursor, wherever it lands [GWS-01]', async () => {
    const { A, B, C, agent, boxes } = await start({ count: 4 });
    const where = inTurn(...boxes);
    const { chat, result, requests, text } = await openChat('sabir', where);
    const sent = chat.sendMessage({ text: 'go' });
    const run = await agent.run();
    let said = '';
    for (const [cut, box] of [A, B, C].entries()) {
      run.text(`${cut} and `, `${cut}. `);
      said += `${cut} and ${cut}. `;
      await until('it is seen', () => text() === said);
      box.cutFront();
    }
    run.text('Done.');
    run.end();
    await sent;
    expect(text()).toBe(`${said}Done.`);
    expect(result()).toMatchObject({ status: 'ready', error: undefined });
    expect(requests.map(({ method, at }) => `${method} ${at}`)).toEqual([
      ...['POST A', 'GET B', 'GET C', 'GET D'],
    ]);
    expect(agent.runs).toHaveLength(1);
  });

  it('take up a client of the contract at its cursor', async () => {
    const { A, B, C, agent } = await start();
    const at = (box: GatewayBox) => createContractUser(box.remote, 'carl');
    const first = openEvents(await at(A).post(contractBody('go')));
    const run = await agent.run();
    run.text('One ', 'two ');
    await first.until(() => first.said() === 'One two ');
    const seen = first.events();
    await first.leave();
    run.text('three ');
    const second = openEvents(await at(B).resumeAt(seen.at(-1)?.id ?? ''));
    await second.until(() => second.said() === 'three ');
    const then = second.events();
    await second.leave();
    run.text('four.');
    run.end();
    const third = openEvents(await at(C).resumeAt(then.at(-1)?.id ?? ''));
    await third.ended;
    const cursor = seen.find(({ id }) => id)?.id ?? '';
    const whole = openEvents(await at(B).resumeAt(cursor));
    await whole.ended;
    const all = [...seen, ...then, ...third.events()];
    const said = all.map((event) => (event.type === 'message.delta' ? event.data.delta : ''));
    expect(said.join('')).toBe('One two three four.');
    const ids = all.flatMap(({ id }) => id ?? []);
    expect(new Set(ids).size).toBe(ids.length);
    expect(whole.said()).toBe('One two three four.');
    expect(all.at(-1)?.type).toBe(whole.events().at(-1)?.type);
    expect(agent.runs).toHaveLength(1);
  });

  it('ask once what is sent to two of them [GWS-02]', async () => {
    const { A, B, C, agent, at, finishes } = await start();
    const responses = await Promise.all([A, B, C, A, B].map((box) => at(box).post(chatBody('go'))));
    const readers = responses.map(openSse);
    const run = await agent.run();
    run.text('Once.');
    run.end();
    await Promise.all(readers.map(({ ended }) => ended));
    for (const reader of readers) expect(reader.text()).toBe('Once.');
    expect(new Set(responses.map(({ headers }) => headers.get('x-sabir-turn'))).size).toBe(1);
    // Also right after it has ended.
    expect(textOf(foldChunks(await readChunks(await at(C).post(chatBody('go')))))).toBe('Once.');
    expect(agent.runs).toHaveLength(1);
    await until('it is stored', () => finishes.length > 0);
    expect(finishes).toHaveLength(1);
  });

  it('ask again for another answer, and for a message that was changed', async () => {
    const { A, B, C, agent, finishes, at } = await start();
    const { chat, result, text } = await openChat('ai@7', inTurn(A, B, C));
    const answerWith = async (index: number, said: string, sent: Promise<void>) => {
      const run = await agent.run(index);
      run.text(said);
      run.end();
      await sent;
      expect(text()).toBe(said);
    };
    await answerWith(0, 'First.', chat.sendMessage({ text: 'go' }));
    await answerWith(1, 'Second.', chat.regenerate());
    await answerWith(2, 'Third.', chat.regenerate());
    const [user] = result().messages as [UIMessage];
    const edited = { text: 'go on', messageId: user.id };
    await answerWith(3, 'Fourth.', chat.sendMessage(edited));
    expect(agent.runs.map(({ prompt }) => prompt.text)).toEqual(['go', 'go', 'go', 'go on']);
    await until('all are stored', () => finishes.length === 4);
    expect(finishes.map(({ at }) => at)).toEqual(['A', 'B', 'C', 'A']);
    const again = ['submit-message', 'regenerate-message', 'regenerate-message', 'submit-message'];
    expect(finishes.map(({ trigger }) => trigger)).toEqual(again);
    expect(agent.runs.map(({ prompt }) => prompt.trigger)).toEqual(again);
    // The session elsewhere has replaced what was asked for before, and calls the message as its client does.
    const history = (await (await at(B).messages()).json()) as UIMessage[];
    expect(history).toEqual(result().messages);
  });

  it('keep a message that waits for the page that comes back to another', async () => {
    const { A, B, agent, at } = await start({ gateway: { timing: { disconnectGraceMs: 300 } } });
    const first = openSse(await at(A).post(chatBody('one')));
    const run = await agent.run();
    run.text('One.');
    await first.until(() => first.text());
    const second = openSse(await at(A).post(chatBody('two')));
    await second.until(() => second.raw().includes('data-queue'));
    await Promise.all([first.leave(), second.leave()]);
    const messages = (await (await at(B).messages()).json()) as UIMessage[];
    expect(messages).toMatchObject([
      { id: 'u-one' },
      { id: 'u-two', metadata: { queue: { position: 1 } } },
    ]);
    const back = openSse(await at(B).resume());
    await back.until(() => back.text());
    await new Promise((resolve) => setTimeout(resolve, 900));
    run.end();
    const next = await agent.run(1);
    next.text('Two.');
    next.end();
    await back.ended;
    const texts = async () => ((await (await at(B).messages()).json()) as UIMessage[]).map(textOf);
    await expect.poll(texts).toEqual(['one', 'One.', 'two', 'Two.']);
  });

  it('stop a turn that runs in another [GWS-03]', async () => {
    const { A, B, C, agent, at, finishes } = await start();
    const sender = openSse(await at(A).post(chatBody('go')));
    const watcher = openSse(await at(C).resume());
    const run = await agent.run();
    run.text('Half ');
    await watcher.until(() => watcher.text());
    expect((await at(B).stop()).status).toBe(202);
    await Promise.all([sender.ended, watcher.ended]);
    await until('it is stopped', () => run.isAborted);
    for (const { chunks, text } of [sender, watcher]) {
      expect(text()).toBe('Half ');
      expect(foldChunks(chunks()).metadata).toMatchObject({
        outcome: 'stopped',
        reason: 'stopped by the user',
      });
    }
    await until('it is stored', () => finishes.length > 0);
    expect(finishes).toMatchObject([{ at: 'A', outcome: { status: 'stopped' } }]);
    expect((await at(C).stop()).status).toBe(204);
  });

  it('keep a turn for a viewer of another, and stop it once when all have left [GWS-07]', async () => {
    const graceMs = 300;
    const { A, B, C, agent, at, finishes, boxes } = await start({
      gateway: { timing: { disconnectGraceMs: graceMs } },
    });
    const pastGrace = () => new Promise((resolve) => setTimeout(resolve, 3 * graceMs));
    const sender = openSse(await at(A).post(chatBody('go')));
    const run = await agent.run();
    run.text('One ');
    await sender.until(() => sender.text());
    await sender.leave();
    const back = openSse(await at(B).resume());
    await back.until(() => back.text());
    await pastGrace();
    expect(run.isAborted).toBe(false);
    run.text('two ');
    await back.until(() => back.text() === 'One two ');
    // Somebody else came meanwhile, and stays.
    const other = openSse(await at(C).resume());
    await other.until(() => other.text() === 'One two ');
    await back.leave();
    await pastGrace();
    expect(run.isAborted).toBe(false);
    run.text('three');
    await other.until(() => other.text() === 'One two three');
    await other.leave();
    await until('it is stopped', () => run.isAborted && finishes.length > 0);
    await pastGrace();
    expect(finishes).toMatchObject([{ at: 'A', outcome: { status: 'stopped' } }]);
    const stops = boxes.flatMap(({ lines }) =>
      lines.filter(({ message }) => message === 'turn stopped: its last viewer left'),
    );
    expect(stops).toHaveLength(1);
    expect(stops[0]?.details).toMatchObject({ chatId: 'c1' });
  });

  it('stop a turn that was left in two of them at once, once', async () => {
    const { A, B, agent, at, finishes } = await start({
      gateway: { timing: { disconnectGraceMs: 200 } },
    });
    const sender = openSse(await at(A).post(chatBody('go')));
    const run = await agent.run();
    run.text('One ');
    const other = openSse(await at(B).resume());
    await other.until(() => other.text());
    await Promise.all([sender.leave(), other.leave()]);
    await until('it is stopped', () => run.isAborted && finishes.length > 0);
    expect(finishes).toMatchObject([{ outcome: { status: 'stopped' } }]);
  });

  it('owe a page the answer that ended between its history and its resume [GWS-08]', async () => {
    const { A, B, C, agent, at } = await start();
    const DETACH = { headers: { 'x-sabir-detach': '1' } };
    const sender = openSse(await at(A).post(chatBody('go'), DETACH));
    const run = await agent.run();
    run.text('Half ');
    await sender.until(() => sender.text());
    const history = (await (await at(B).messages()).json()) as UIMessage[];
    // The answer that is being written is the resume's to tell.
    expect(history.map(({ role }) => role)).toEqual(['user']);
    run.text('and whole.');
    run.end();
    await sender.ended;
    const resumed = await at(C).resume();
    const told = openSse(resumed);
    await told.ended;
    expect([resumed.status, told.text()]).toEqual([200, 'Half and whole.']);
  });
});
