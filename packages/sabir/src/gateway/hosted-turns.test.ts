import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { chatBody, eventually, openSse, readChunks, refusal } from '../../test/gateway-client.ts';
import { outcomeOf, queueOf, startHosted as start, turnOf } from '../../test/hosted-gateway.ts';
import { foldChunks } from '../core/fold.ts';
import type { UIMessage } from '../core/message.ts';
import { sqliteSessionStore } from '../platforms/node/sessions.ts';
import { memorySessionStore } from '../sessions/index.ts';
import type { TurnLog } from '../turns/log.ts';

describe('a prompt to a session in the gateway’s process', () => {
  it('is asked once, however often its POST is sent while its turn runs and after that', async () => {
    const { agent, carl, finished } = start();
    const responses = await Promise.all([1, 2, 3].map(() => carl.post(chatBody('go'))));
    const streams = responses.map(openSse);
    const run = await agent.run();
    run.text('Once.');
    run.end();
    await Promise.all(streams.map(({ ended }) => ended));
    const late = await carl.post(chatBody('go'));
    const again = openSse(late);
    await again.ended;
    for (const { text } of [...streams, again]) expect(text()).toBe('Once.');
    expect(new Set([...responses, late].map(turnOf)).size).toBe(1);
    expect(agent.runs).toHaveLength(1);
    await eventually(() => finished.length > 0, 'onFinish');
    expect(finished).toHaveLength(1);
  });

  it.each(['failed', 'stopped'])('is asked anew after its turn has %s', async (how) => {
    const { agent, carl } = start();
    const fail = { type: 'error', errorText: 'It broke.' } as const;
    const first = await carl.post(chatBody('go'));
    const sse = openSse(first);
    const run = await agent.run();
    run.text('Half ');
    await sse.until(() => sse.text());
    if (how === 'stopped') await carl.stop();
    else run.say(fail);
    run.end();
    await sse.ended;
    expect(outcomeOf(sse.chunks())).toMatchObject({ outcome: how });
    // A client that only did not get its answer says so, and gets the turn that there was.
    const repeat = await carl.post(chatBody('go'), { headers: { 'x-sabir-resume': '1' } });
    expect(turnOf(repeat)).toBe(turnOf(first));
    await repeat.body?.cancel();
    const second = await carl.post(chatBody('go'));
    const again = openSse(second);
    const next = await agent.run(1);
    next.text('Whole.');
    next.end();
    await again.ended;
    expect(again.text()).toBe('Whole.');
    expect(turnOf(second)).not.toBe(turnOf(first));
  });

  it('can be stopped while the log is still beginning its turn', async () => {
    const store = memorySessionStore();
    const begin: TurnLog['begin'] = async (info) => {
      await new Promise((resolve) => setTimeout(resolve, 60));
      return store.log.begin(info);
    };
    const { agent, carl } = start({ sessions: { store, log: { ...store.log, begin } } });
    const sse = openSse(await carl.post(chatBody('go')));
    expect((await carl.stop()).status).toBe(202);
    await sse.ended;
    expect(outcomeOf(sse.chunks())).toEqual({ outcome: 'stopped', reason: 'stopped by the user' });
    expect(agent.runs.every(({ isAborted }) => isAborted)).toBe(true);
  });

  it('begins one turn for each of two users who say the same', async () => {
    const { agent, user } = start();
    const streams = [];
    for (const name of ['carl', 'cora']) {
      streams.push(openSse(await user(name).post(chatBody('go', { id: name }))));
    }
    for (const at of [0, 1]) {
      const run = await agent.run(at);
      run.text(run.prompt.user.id);
      run.end();
    }
    await Promise.all(streams.map(({ ended }) => ended));
    expect(streams.map(({ text }) => text())).toEqual(['carl', 'cora']);
  });

  it('that the session refuses is answered with a status, and holds nothing', async () => {
    const { agent, carl, session } = start({ sessions: { limits: { queuedPrompts: 1 } } });
    const first = openSse(await carl.post(chatBody('one')));
    await agent.run();
    const second = openSse(await carl.post(chatBody('two')));
    await second.until(() => queueOf(second.chunks()).length);
    const refused = await carl.post(chatBody('three'));
    expect(await refusal(refused)).toMatchObject({ status: 429, code: 'queue-full' });
    expect(session.queue.size).toBe(1);
    expect(await carl.metrics()).toMatchObject({ sabir_live_turns: 2, sabir_viewers: 2 });
    // One that was accepted is still given its turn.
    const again = await carl.post(chatBody('two'));
    expect(again.status).toBe(200);
    for (const sse of [first, second]) await sse.leave();
    await again.body?.cancel();
  });

  it('past the gateway’s own limit of turns is refused, and one that is known is not', async () => {
    const { agent, carl } = start({ gateway: { limits: { liveTurnsPerUser: 1 } } });
    const first = openSse(await carl.post(chatBody('one')));
    const run = await agent.run();
    expect((await carl.post(chatBody('two'))).status).toBe(429);
    const again = openSse(await carl.post(chatBody('one')));
    run.text('One.');
    run.end();
    await Promise.all([first.ended, again.ended]);
    expect(again.text()).toBe('One.');
    expect(agent.runs).toHaveLength(1);
  });
});

describe('a conversation that is seen as several chats', () => {
  it('shows the turn that runs under every chat id, and to every user', async () => {
    const { agent, carl, user } = start();
    const sender = openSse(await carl.post(chatBody('go', { id: 'c1' })));
    const run = await agent.run();
    run.text('Half ');
    const others = [
      openSse(await carl.resume('c2')),
      openSse(await user('vera').resume('another')),
    ];
    await Promise.all(others.map((sse) => sse.until(() => sse.text() === 'Half ')));
    run.text('and whole.');
    run.end();
    await Promise.all([sender, ...others].map(({ ended }) => ended));
    for (const { chunks } of others)
      expect(foldChunks(chunks())).toEqual(foldChunks(sender.chunks()));
  });

  it('keeps its channels apart', async () => {
    const { agent, carl } = start();
    const query = 'channelType=slack&channelId=c9';
    const slack = openSse(await carl.post(chatBody('go'), { query }));
    const run = await agent.run();
    run.text('In Slack.');
    await slack.until(() => slack.text());
    expect((await carl.resume()).status).toBe(204);
    const there = openSse(await carl.resume('c1', { query }));
    await there.until(() => there.text() === 'In Slack.');
    run.end();
    await Promise.all([slack.ended, there.ended]);
    expect(await (await carl.messages()).json()).toEqual([]);
    expect(await (await carl.channels()).json()).toEqual([
      { channelType: 'slack', channelId: 'c9' },
    ]);
  });
});

describe('the last viewer’s leaving', () => {
  const graceMs = 30;
  const options = { gateway: { timing: { disconnectGraceMs: graceMs } } };
  const pastGrace = () => new Promise((resolve) => setTimeout(resolve, 4 * graceMs));

  async function startWatched() {
    const given = start(options);
    const sse = openSse(await given.carl.post(chatBody('go')));
    const run = await given.agent.run();
    run.text('Half ');
    await sse.until(() => sse.text());
    return { ...given, sse, run };
  }

  it('stops a turn that runs, after the grace', async () => {
    const { sse, run, finished } = await startWatched();
    await sse.leave();
    expect(run.isAborted).toBe(false);
    await eventually(() => run.isAborted, 'its end');
    await eventually(() => finished.length > 0, 'onFinish');
    expect(finished).toMatchObject([
      { outcome: { status: 'stopped', reason: 'the last viewer left' } },
    ]);
  });

  it('withdraws a prompt that waits, and leaves the turn before it alone', async () => {
    const { run, user, session, finished } = await startWatched();
    const second = openSse(await user('olga').post(chatBody('second', { id: 'c2' })));
    await second.until(() => queueOf(second.chunks()).length);
    await second.leave();
    await eventually(() => session.queue.size === 0, 'its withdrawal');
    await pastGrace();
    expect(run.isAborted).toBe(false);
    expect(finished).toEqual([]);
  });

  it('stops nothing while another chat of the conversation shows the turn', async () => {
    const { sse, run, user } = await startWatched();
    const other = openSse(await user('olga').resume('c2'));
    await other.until(() => other.text());
    await sse.leave();
    await pastGrace();
    expect(run.isAborted).toBe(false);
    await other.leave();
    await eventually(() => run.isAborted, 'its end');
  });

  it('stops nothing while a person is on a socket of the session', async () => {
    const { sse, run, session } = await startWatched();
    const leave = session.people.enter({ id: 'olga' }, 'owner');
    await sse.leave();
    await pastGrace();
    expect(run.isAborted).toBe(false);
    leave();
  });

  it('stops nothing while a question is open', async () => {
    const { sse, run, carl } = await startWatched();
    const reply = run.prompt.ask({ questionId: 'q', text: 'Deploy?' });
    await sse.until(() => sse.raw().includes('Deploy?'));
    await sse.leave();
    await pastGrace();
    expect(run.isAborted).toBe(false);
    expect((await carl.answer('q', 'Yes')).status).toBe(202);
    expect(await reply).toMatchObject({ status: 'answered', answer: 'Yes' });
    run.end();
  });

  it('stops nothing where the viewer promised to stop by itself', async () => {
    const { agent, carl } = start(options);
    const detach = { headers: { 'x-sabir-detach': '1' } };
    const sse = openSse(await carl.post(chatBody('go'), detach));
    const run = await agent.run();
    run.text('Half ');
    await sse.until(() => sse.text());
    await sse.leave();
    await pastGrace();
    expect(run.isAborted).toBe(false);
    run.end();
  });
});

describe('what a session keeps of its turns', () => {
  const idsOf = (messages: UIMessage[]) => messages.map(({ id }) => id);

  it('is every message once, without the answer that is being written', async () => {
    const { agent, carl } = start();
    const history = async () => (await (await carl.messages()).json()) as UIMessage[];
    for (const [at, text] of ['one', 'two'].entries()) {
      const sse = openSse(await carl.post(chatBody(text)));
      const run = await agent.run(at);
      run.text(`Answer to ${text}.`);
      await sse.until(() => sse.text());
      expect((await history()).map(({ role }) => role)).toEqual(
        at === 0 ? ['user'] : ['user', 'assistant', 'user'],
      );
      run.end();
      await sse.ended;
      const [messages, last] = [await history(), foldChunks(sse.chunks())];
      expect(messages.at(-1)).toEqual(last);
      expect(new Set(idsOf(messages)).size).toBe(messages.length);
    }
    expect((await history()).flatMap(({ parts }) => parts)).toMatchObject([
      { text: 'one' },
      { text: 'Answer to one.' },
      { text: 'two' },
      { text: 'Answer to two.' },
    ]);
  });

  it('owes a page the answer that ended between its history and its resume', async () => {
    const { agent, carl } = start();
    const sse = openSse(await carl.post(chatBody('go')));
    const run = await agent.run();
    run.text('Half ');
    await sse.until(() => sse.text());
    const messages: UIMessage[] = await (await carl.messages()).json();
    expect(messages.map(({ role }) => role)).toEqual(['user']);
    run.text('and whole.');
    run.end();
    await sse.ended;
    const resumed = openSse(await carl.resume());
    await resumed.ended;
    expect(resumed.text()).toBe('Half and whole.');
    expect((await carl.resume()).status).toBe(204);
  });

  it('is told to onFinish once for each turn, with the message that is stored', async () => {
    const { agent, carl, user, finished, session } = start();
    const first = openSse(await carl.post(chatBody('one')));
    const second = openSse(await user('olga').post(chatBody('two', { id: 'c2' })));
    const watcher = openSse(await user('vera').resume('c3'));
    for (const at of [0, 1]) {
      const run = await agent.run(at);
      run.text(`Answer ${at}.`);
      run.end();
    }
    await Promise.all([first, second, watcher].map(({ ended }) => ended));
    await eventually(() => finished.length === 2, 'onFinish');
    expect(finished).toMatchObject([
      { user: { id: 'carl' }, chatId: 'c1', sessionId: 's1', outcome: { status: 'finished' } },
      { user: { id: 'olga' }, chatId: 'c2', sessionId: 's1', outcome: { status: 'finished' } },
    ]);
    const stored = session.storage.messages().filter(({ role }) => role === 'assistant');
    expect(finished.map(({ message }) => message)).toEqual(
      stored.map(({ id, role, parts, metadata }) => ({ id, role, parts, metadata })),
    );
  });
});

describe('a question that an agent of a session asks', () => {
  it('is answered over HTTP by any chat id, once, and shown to every viewer', async () => {
    const { agent, carl, user } = start();
    const sse = openSse(await carl.post(chatBody('go')));
    const vera = openSse(await user('vera').resume('c9'));
    const run = await agent.run();
    const reply = run.prompt.ask({ questionId: 'q', text: 'Deploy?', options: ['Yes', 'No'] });
    await sse.until(() => sse.raw().includes('Deploy?'));
    expect((await user('vera').answer('q', 'Yes')).status).toBe(404);
    expect((await carl.answer('another', 'Yes')).status).toBe(404);
    expect((await user('olga').answer('q', 'Yes', 'c2')).status).toBe(202);
    expect(await reply).toMatchObject({ status: 'answered', answer: 'Yes' });
    const late = await carl.answer('q', 'No');
    expect([late.status, (await late.json()).answer]).toEqual([409, 'Yes']);
    run.text('Done.');
    run.end();
    await Promise.all([sse.ended, vera.ended]);
    for (const { chunks } of [sse, vera]) {
      const questions = chunks().filter(({ type }) => type === 'data-question');
      expect(questions.at(-1)).toMatchObject({ data: { status: 'answered', answer: 'Yes' } });
    }
  });

  it('that nobody answers in time expires, for the agent and for those who come too late', async () => {
    const { agent, carl } = start();
    const sse = openSse(await carl.post(chatBody('go')));
    const run = await agent.run();
    const reply = run.prompt.ask({ questionId: 'q', text: 'Deploy?', expiresInMs: 20 });
    expect(await reply).toEqual({ status: 'expired' });
    await sse.until(() => sse.raw().includes('"expired"'));
    expect((await carl.answer('q', 'Yes')).status).toBe(410);
    run.end();
    await sse.ended;
  });
});

describe('a restart of the process, on SQLite', () => {
  function openFolder() {
    const folder = mkdtempSync(join(tmpdir(), 'sabir-hosted-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'sabir.db');
    return () => start({ sessions: { store: sqliteSessionStore({ file }) } });
  }
  const cursorAt = (sse: ReturnType<typeof openSse>, index: number) => sse.frames[index]?.id ?? '';

  it('leaves an ended turn to be resumed from any cursor', async () => {
    const open = openFolder();
    const before = open();
    const sse = openSse(await before.carl.post(chatBody('go')));
    const run = await before.agent.run();
    for (const word of ['One ', 'two ', 'three.']) {
      run.text(word);
      await sse.until(() => sse.text().endsWith(word));
    }
    run.end();
    await sse.ended;
    await before.close();
    const { carl } = open();
    const whole = foldChunks(sse.chunks());
    for (const at of sse.frames.keys()) {
      const cursor = cursorAt(sse, at);
      const response = await carl.resumeAt(cursor);
      if (response.status === 204) {
        expect(sse.chunks()[at]?.type ?? 'finish').toBe('finish');
        continue;
      }
      const seen = sse.chunks().slice(0, at + 1);
      expect(foldChunks([...seen, ...(await readChunks(response))])).toEqual(whole);
    }
    const again = await carl.post(chatBody('go'));
    expect(foldChunks(await readChunks(again))).toEqual(whole);
  });

  it('ends a turn whose agent was in the process, for those who come back to it', async () => {
    const open = openFolder();
    const before = open();
    const response = await before.carl.post(chatBody('go'));
    const sse = openSse(response);
    const run = await before.agent.run();
    run.text('Half ');
    await sse.until(() => sse.text());
    const seen = sse.chunks();
    const cursor = sse.frames.at(-1)?.id ?? '';
    await before.close();
    await sse.ended;
    const { carl, session } = open();
    await eventually(() => session.isIdle, 'its end');
    const rest = await readChunks(await carl.resumeAt(cursor));
    const message = foldChunks([...seen, ...rest]);
    expect(message).toMatchObject({ metadata: { outcome: 'failed' } });
    expect(message.parts).toMatchObject([{ type: 'text', text: 'Half ' }]);
    const history: UIMessage[] = await (await carl.messages()).json();
    expect(history.map(({ id, role }) => [id === message.id, role])).toEqual([
      [false, 'user'],
      [true, 'assistant'],
    ]);
  });

  it('answers the prompts that waited, and each is asked once', async () => {
    const open = openFolder();
    const before = open();
    const first = openSse(await before.carl.post(chatBody('first')));
    (await before.agent.run()).text('Half ');
    await first.until(() => first.text());
    const second = openSse(await before.carl.post(chatBody('second', { id: 'c2' })));
    await second.until(() => queueOf(second.chunks()).length);
    await before.close();
    const { agent, carl } = open();
    const run = await agent.run();
    expect(run.prompt.text).toBe('second');
    const again = openSse(await carl.post(chatBody('second', { id: 'c2' })));
    run.text('Second.');
    run.end();
    await again.ended;
    expect(again.text()).toBe('Second.');
    expect(agent.runs).toHaveLength(1);
  });
});
