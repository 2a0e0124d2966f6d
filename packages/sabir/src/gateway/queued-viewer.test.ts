import { describe, expect, it, onTestFinished } from 'vitest';
import { openEvents } from '../../test/contract-client.ts';
import { chatBody, eventually, openSse } from '../../test/gateway-client.ts';
import {
  type HostedOptions,
  outcomeOf,
  queueOf,
  startHosted,
  turnOf,
} from '../../test/hosted-gateway.ts';
import { CLIENTS, createClient, httpTransport } from '../../test/real-clients.ts';
import { ChatStream } from '../clients/chat-stream.ts';

const waiting = (position: number) => ({ position, status: 'waiting' });

describe('a prompt that waits', () => {
  async function startQueue(options: HostedOptions = {}) {
    const given = startHosted(options);
    const { agent, carl, user } = given;
    const first = openSse(await carl.post(chatBody('first')));
    const run = await agent.run();
    run.text('First.');
    await first.until(() => first.text());
    const olga = user('olga');
    return { ...given, first, run, olga };
  }

  it('is shown with its place, then with its turn, on the AI SDK’s wire', async () => {
    const { agent, carl, olga, run } = await startQueue();
    const second = openSse(await olga.post(chatBody('second', { id: 'c2' })));
    const third = openSse(await carl.post(chatBody('third', { id: 'c3' })));
    await third.until(() => queueOf(third.chunks()).length);
    run.end();
    for (const [at, said] of ['Second.', 'Third.'].entries()) {
      const next = await agent.run(at + 1);
      next.text(said);
      next.end();
    }
    await Promise.all([second.ended, third.ended]);
    const begun = { position: 0, status: 'begun' };
    expect(queueOf(second.chunks())).toEqual([waiting(1), begun]);
    expect(queueOf(third.chunks())).toEqual([waiting(2), waiting(1), begun]);
    expect([second.text(), third.text()]).toEqual(['Second.', 'Third.']);
    const ids = third.chunks().flatMap((chunk) => (chunk.type === 'start' ? chunk.messageId : []));
    expect(new Set(ids).size).toBe(1);
    // Its place belongs to the session: the log has only the turn.
    const replayed = openSse(await carl.resumeAt(third.frames[0]?.id ?? '', 'c3'));
    await replayed.ended;
    expect(queueOf(replayed.chunks())).toEqual([]);
    expect(replayed.text()).toBe('Third.');
  });

  it('is shown on the contract’s wire as well, in one message', async () => {
    const { agent, olga, run } = await startQueue();
    const query = 'wire=contract';
    const second = openEvents(await olga.post(chatBody('second', { id: 'c2' }), { query }));
    await second.until(() => second.types().includes('data'));
    run.end();
    const next = await agent.run(1);
    next.text('Second.');
    next.end();
    await second.ended;
    const places = second
      .events()
      .flatMap(({ type, data }) => (type === 'data' && data.name === 'queue' ? [data.data] : []));
    expect(places).toEqual([waiting(1), { position: 0, status: 'begun' }]);
    expect(second.said()).toBe('Second.');
    const ids = second
      .events()
      .flatMap((event) => (event.type === 'message.start' ? [event.data.messageId] : []));
    expect(new Set(ids).size).toBe(1);
    expect(second.types().at(-1)).toBe('done');
  });

  it.each(CLIENTS)(
    'is one message of $name, with its place and then its answer',
    async ({ name }) => {
      const { agent, olga, run } = await startQueue();
      const transport = await httpTransport(name, (_, init) =>
        olga.send('POST', '/api/sessions/s1/chat', { headers: init.headers ?? {} }, init.body),
      );
      const { chat, result } = await createClient(name, transport, { id: 'c2' });
      const sent = chat.sendMessage({ text: 'second' });
      await eventually(
        () => JSON.stringify(result().message)?.includes('"position":1'),
        'its place',
      );
      run.end();
      const next = await agent.run(1);
      next.text('Second.');
      next.end();
      await sent;
      const { messages, error } = result();
      expect([error, messages.map(({ role }) => role)]).toEqual([undefined, ['user', 'assistant']]);
      expect(messages[1]?.parts).toMatchObject([
        { type: 'data-queue', data: { position: 0, status: 'begun' } },
        { type: 'text', text: 'Second.' },
      ]);
    },
  );

  it('is one message of the contract’s client, with its place and then its answer', async () => {
    const { agent, gateway, run } = await startQueue();
    const chat = new ChatStream({
      api: 'http://gateway.test/api/sessions/s1/chat?wire=contract',
      id: 'c2',
      body: { id: 'c2' },
      headers: { authorization: 'Bearer olga' },
      fetch: (input, init) => gateway.fetch(new Request(input as string, init)),
    });
    onTestFinished(() => chat.detach());
    const sent = chat.sendMessage({ parts: [{ type: 'text', text: 'second' }] });
    const { getSnapshot } = chat;
    await eventually(
      () => JSON.stringify(getSnapshot().messages).includes('"position":1'),
      'its place',
    );
    run.end();
    const next = await agent.run(1);
    next.text('Second.');
    next.end();
    await sent;
    const { messages } = getSnapshot();
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
    // The turn's own `message.start` begins the message anew.
    expect(messages[1]?.parts).toMatchObject([{ type: 'text', text: 'Second.' }]);
  });

  it('is withdrawn by a stop in its chat, which leaves the turn alone that runs', async () => {
    const { agent, olga, first, run, session, finished } = await startQueue();
    const second = openSse(await olga.post(chatBody('second', { id: 'c2' })));
    await second.until(() => queueOf(second.chunks()).length);
    expect((await olga.stop('c2')).status).toBe(202);
    await second.ended;
    expect(outcomeOf(second.chunks())).toMatchObject({ outcome: 'stopped', reason: 'withdrawn' });
    expect(queueOf(second.chunks()).at(-1)).toEqual({ position: 0, status: 'withdrawn' });
    expect(session.queue.size).toBe(0);
    expect(run.isAborted).toBe(false);
    run.end();
    await first.ended;
    await eventually(() => finished.length > 0, 'onFinish');
    expect(finished).toHaveLength(1);
    expect(agent.runs).toHaveLength(1);
  });

  it('is not another collaborator’s to withdraw, and an owner’s it is', async () => {
    const { carl, user, olga, session, run } = await startQueue();
    const cora = openSse(await user('cora').post(chatBody('second', { id: 'c2' })));
    await cora.until(() => queueOf(cora.chunks()).length);
    expect((await carl.stop('c2')).status).toBe(204);
    expect(session.queue.size).toBe(1);
    expect((await olga.stop('c2')).status).toBe(202);
    await cora.ended;
    expect(run.isAborted).toBe(false);
  });

  it('waits on while a stop in another chat ends the turn that runs', async () => {
    const { agent, carl, olga, first, run } = await startQueue();
    const second = openSse(await olga.post(chatBody('second', { id: 'c2' })));
    await second.until(() => queueOf(second.chunks()).length);
    expect((await carl.stop('c1')).status).toBe(202);
    await first.ended;
    expect(run.isAborted).toBe(true);
    const next = await agent.run(1);
    next.text('Second.');
    next.end();
    await second.ended;
    expect(second.text()).toBe('Second.');
  });

  it('is found by a page that comes back to it, and shown with its place', async () => {
    const { agent, olga, run, session } = await startQueue();
    const response = await olga.post(chatBody('second', { id: 'c2' }), {
      headers: { 'x-sabir-detach': '1' },
    });
    const second = openSse(response);
    await second.until(() => queueOf(second.chunks()).length);
    await second.leave();
    const back = openSse(await olga.resumeAt(`${turnOf(response)}:0`, 'c2'));
    await back.until(() => queueOf(back.chunks()).length);
    expect(session.queue.size).toBe(1);
    run.end();
    const next = await agent.run(1);
    next.text('Second.');
    next.end();
    await back.ended;
    expect(back.text()).toBe('Second.');
  });

  it('ends its streams with an error that says so when the process closes, and stays in the queue', async () => {
    const { olga, session, gateway, sessions } = await startQueue();
    const second = openSse(await olga.post(chatBody('second', { id: 'c2' })));
    await second.until(() => queueOf(second.chunks()).length);
    const [prompt] = session.queue.list();
    await Promise.all([gateway.close(), sessions.close(0)]);
    await second.ended;
    expect(second.raw()).toContain('shutting-down');
    expect(session.storage.promptInfo('promptId', prompt?.promptId ?? '')).toMatchObject({
      status: 'queued',
    });
  });
});
