import { describe, expect, it, onTestFinished } from 'vitest';
import {
  chatBody,
  createTestGateway,
  createUser,
  eventually,
  openSse,
} from '../../test/gateway-client.ts';
import { queueOf, startHosted } from '../../test/hosted-gateway.ts';
import { createLinkRig } from '../../test/link-rig.ts';
import type { ClientName } from '../../test/real-clients.ts';
import { CLIENTS, openPage, saysOf } from '../../test/stock-pages.ts';
import type { UIMessage } from '../core/message.ts';

const graceMs = 200;
const pastGrace = () => new Promise((resolve) => setTimeout(resolve, 1.5 * graceMs));

/** Two messages were sent, the first is being answered, and the page has been closed. */
async function startReloading(name: ClientName = 'ai@7') {
  const given = startHosted({ gateway: { timing: { disconnectGraceMs: graceMs } } });
  const { agent, carl } = given;
  // To load a client takes longer than the grace.
  await openPage(name, given.gateway);
  const first = openSse(await carl.post(chatBody('one', { id: 'chat' })));
  const run = await agent.run();
  run.text('Half ');
  await first.until(() => first.text());
  const second = openSse(await carl.post(chatBody('two', { id: 'chat' })));
  await second.until(() => queueOf(second.chunks()).length);
  await Promise.all([first.leave(), second.leave()]);
  return { ...given, run };
}

/** 6.0.9 begins every resume with a copy of the last answer on the screen, so that a page can resume only once. */
const RESUMING = CLIENTS.filter(({ name }) => name !== 'ai@6.0.9');

describe.each(CLIENTS)('stock $name, reloaded while its second message waits', ({ name }) => {
  it('shows both messages and the answer that runs, and the second is not withdrawn', async () => {
    const { gateway, run, agent, session, finished } = await startReloading(name);
    const page = await openPage(name, gateway);
    expect(page.shown()).toEqual(['one', 'two']);
    expect(page.ids()).toEqual(['u-one', 'u-two']);
    expect(page.chat.messages[1]?.metadata).toEqual({ queue: { position: 1 } });
    const resumed = page.chat.resumeStream();
    await eventually(() => page.shown().at(-1) === 'Half ', 'the answer that runs');
    await pastGrace();
    expect([run.isAborted, session.queue.size]).toEqual([false, 1]);
    run.text('and whole.');
    run.end();
    await resumed;
    expect(page.shown()).toEqual(['one', 'two', 'Half and whole.']);
    const next = await agent.run(1);
    await pastGrace();
    next.text('Second.');
    next.end();
    await eventually(() => finished.length === 2, 'the second answer');
    const reloaded = await openPage(name, gateway);
    expect(reloaded.shown()).toEqual(['one', 'Half and whole.', 'two', 'Second.']);
    expect(reloaded.chat.messages.some(({ metadata }) => 'queue' in Object(metadata))).toBe(false);
  });
});

describe.each(RESUMING)(
  'stock $name, reloaded, that resumes once more per waiting message',
  ({ name }) => {
    it.each(['soon', 'late'])('shows the answer of the one that waited, read %s', async (when) => {
      const { gateway, run, agent, finished } = await startReloading(name);
      // As docs/GATEWAY.md says.
      let waiting = 0;
      const onFinish = async () => {
        if (waiting-- <= 0) return;
        if (when === 'late') await eventually(() => finished.length === 2, 'the second answer');
        await page.chat.resumeStream();
      };
      const page = await openPage(name, gateway, { onFinish: () => void onFinish() });
      waiting = page.chat.messages.filter(({ metadata }) => 'queue' in Object(metadata)).length;
      void page.chat.resumeStream();
      await eventually(() => page.shown().at(-1) === 'Half ', 'the answer that runs');
      run.text('and whole.');
      run.end();
      const next = await agent.run(1);
      next.text('Second.');
      next.end();
      await eventually(() => page.shown().at(-1) === 'Second.', 'the second answer on the page');
      await eventually(() => page.chat.status === 'ready', 'the end');
      expect(page.chat.error).toBeUndefined();
      expect(page.shown()).toEqual(['one', 'two', 'Half and whole.', 'Second.']);
      expect(new Set(page.ids()).size).toBe(4);
    });
  },
);

describe('a page that resumes when two messages that waited have been answered', () => {
  it.each(RESUMING)(
    'shows one answer a resume, the oldest first: stock $name',
    async ({ name }) => {
      const { agent, carl, gateway, finished } = startHosted();
      const first = openSse(await carl.post(chatBody('one')));
      (await agent.run()).text('First.');
      await first.until(() => first.text());
      await carl.post(chatBody('two'));
      await carl.post(chatBody('three'));
      const page = await openPage(name, gateway);
      const resumed = page.chat.resumeStream();
      await eventually(() => page.shown().at(-1) === 'First.', 'the answer that runs');
      (await agent.run()).end();
      const second = await agent.run(1);
      second.text('Second.');
      second.end();
      const third = await agent.run(2);
      third.text('Third.');
      await resumed;
      const said = ['one', 'two', 'three', 'First.', 'Second.', 'Third.'];
      await page.chat.resumeStream();
      expect(page.shown()).toEqual(said.slice(0, 5));
      third.end();
      await eventually(() => finished.length === 3, 'the third answer');
      await page.chat.resumeStream();
      expect(page.shown()).toEqual(said);
      await page.chat.resumeStream();
      expect(page.shown()).toEqual(said);
    },
  );
});

describe('a message that waits in a session', () => {
  it('is withdrawn when the page that came back for it has left as well', async () => {
    const { carl, session, run } = await startReloading();
    const back = openSse(await carl.resume('chat'));
    await back.until(() => back.text());
    await pastGrace();
    expect(session.queue.size).toBe(1);
    await back.leave();
    await eventually(() => session.queue.size === 0, 'its withdrawal');
    await eventually(() => run.isAborted, 'the end of the turn that ran');
  });

  it('is withdrawn though another person watches the turn in front of it', async () => {
    const { user, session, run } = await startReloading();
    const other = openSse(await user('olga').resume('chat'));
    await other.until(() => other.text());
    await eventually(() => session.queue.size === 0, 'its withdrawal');
    expect(run.isAborted).toBe(false);
    await other.leave();
  });

  it('is in the history of its own channel, behind all that was said', async () => {
    const { agent, carl } = startHosted();
    const query = 'channelType=slack&channelId=c9';
    openSse(await carl.post(chatBody('one')));
    await agent.run();
    openSse(await carl.post(chatBody('two'), { query }));
    openSse(await carl.post(chatBody('three')));
    const history = async (path: string) =>
      (await (await carl.send('GET', `/api/sessions/s1/messages${path}`)).json()) as UIMessage[];
    expect((await history('')).map(({ id }) => id)).toEqual(['u-one', 'u-three']);
    expect(await history(`?${query}`)).toEqual([
      {
        id: 'u-two',
        role: 'user',
        parts: [{ type: 'text', text: 'two' }],
        metadata: { queue: { position: 1 } },
      },
    ]);
    expect((await history(''))[1]?.metadata).toEqual({ queue: { position: 2 } });
  });

  it('takes no place from what was said: what does not fit is an excerpt', async () => {
    const limits = { initBytes: 20_000 };
    const { agent, carl, user } = startHosted({ sessions: { limits } });
    const first = openSse(await carl.post(chatBody('one')));
    const run = await agent.run();
    run.text('The first answer.');
    run.end();
    await first.ended;
    openSse(await carl.post(chatBody('two')));
    await agent.run(1);
    for (const text of ['x'.repeat(15_000), 'y'.repeat(15_000), 'short']) {
      openSse(await user('cora').post(chatBody(text)));
    }
    const messages: UIMessage[] = await (await carl.messages()).json();
    const [long, excerpt] = ['x'.repeat(15_000), 'y'.repeat(500)];
    expect(saysOf(messages)).toEqual(['one', 'The first answer.', 'two', long, excerpt, 'short']);
    expect(messages.slice(3).map(({ metadata }) => metadata)).toEqual([
      { queue: { position: 1 } },
      { queue: { position: 2, isExcerpt: true } },
      { queue: { position: 3 } },
    ]);
  });
});

describe('a message that waits in a session elsewhere', () => {
  /** The first of two messages is being answered, and the page has been closed. */
  async function startLinked() {
    const rig = await createLinkRig({ host: 'agent' });
    const gateway = createTestGateway(rig.upstream, { timing: { disconnectGraceMs: graceMs } });
    onTestFinished(async () => {
      await gateway.close();
      await rig.close();
    });
    const carl = createUser(gateway, 'carl');
    const first = openSse(await carl.post(chatBody('slow')));
    await first.until(() => first.text());
    const second = openSse(await carl.post(chatBody('text')));
    await second.until(() => queueOf(second.chunks()).length);
    return { carl, olga: createUser(gateway, 'olga'), first, second };
  }

  const idsOf = async (history: Promise<Response>) =>
    ((await (await history).json()) as UIMessage[]).map(({ id }) => id);

  it('is withdrawn though another person watches the turn in front of it', async () => {
    const { carl, olga, first, second } = await startLinked();
    const other = openSse(await olga.resume());
    await other.until(() => other.text());
    expect(await idsOf(carl.messages())).toEqual(['u-slow', 'u-text']);
    await Promise.all([first.leave(), second.leave()]);
    await pastGrace();
    await eventually(async () => (await idsOf(carl.messages())).length === 1, 'its withdrawal');
    await other.leave();
  });

  it('is not withdrawn while its author has come back', async () => {
    const { carl, first, second } = await startLinked();
    const back = openSse(await carl.resume());
    await back.until(() => back.text());
    await Promise.all([first.leave(), second.leave()]);
    await pastGrace();
    expect(await idsOf(carl.messages())).toEqual(['u-slow', 'u-text']);
    await back.leave();
  });
});
