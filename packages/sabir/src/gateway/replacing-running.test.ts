import { describe, expect, it } from 'vitest';
import {
  chatBody,
  editBody,
  eventually,
  openSse,
  refusal,
  regenerateBody,
} from '../../test/gateway-client.ts';
import { outcomeOf, startHosted, turnOf } from '../../test/hosted-gateway.ts';
import { CLIENTS, openPage, saysOf } from '../../test/stock-pages.ts';

/** A session in which carl's prompt "one" is being answered. */
async function startAnswering() {
  const given = startHosted();
  const response = await given.carl.post(chatBody('one'));
  const first = openSse(response);
  const run = await given.agent.run();
  run.text('Half');
  await first.until(() => first.text());
  const stored = () => saysOf(given.session.storage.messages());
  return { ...given, first, run, stored, turnId: turnOf(response) };
}

describe.each(CLIENTS)('stock $name, after a stop that only disconnects', ({ name }) => {
  async function stopHalfway() {
    const { agent, gateway, session } = startHosted();
    const page = await openPage(name, gateway);
    const sent = page.chat.sendMessage({ text: 'one' });
    (await agent.run()).text('Half');
    await eventually(() => page.shown().at(-1) === 'Half', 'half of the answer');
    await page.chat.stop();
    await sent;
    const expectAnswered = async (asking: Promise<void>, shown: string[]) => {
      const next = await agent.run(1);
      next.text('Whole');
      next.end();
      await asking;
      expect(page.chat.error).toBeUndefined();
      expect(page.shown()).toEqual(shown);
      const reloaded = await openPage(name, gateway);
      expect(reloaded.shown()).toEqual(shown);
      expect(session.running).toBeUndefined();
    };
    return { page, expectAnswered };
  }

  it('regenerates at once', async () => {
    const { page, expectAnswered } = await stopHalfway();
    await expectAnswered(page.chat.regenerate(), ['one', 'Whole']);
  });

  it('edits at once', async () => {
    const { page, expectAnswered } = await stopHalfway();
    const edited = { text: 'uno', messageId: page.ids()[0] } as { text: string };
    await expectAnswered(page.chat.sendMessage(edited), ['uno', 'Whole']);
  });
});

describe('a regenerate or an edit of what is being answered', () => {
  it.each([
    ['its author', 'carl', regenerateBody('one')],
    ['its author, who names the answer', 'carl', 'answer'],
    ['its author, with other words', 'carl', editBody('u-one', 'uno')],
    ['an owner', 'olga', regenerateBody('one')],
  ])('by %s stops the turn and replaces it', async (_, name, body) => {
    const { agent, user, first, run, stored, finished, session } = await startAnswering();
    const answer = session.running?.messageId;
    const post = body === 'answer' ? regenerateBody('one', { messageId: answer }) : body;
    const second = openSse(await user(name).post(post));
    await first.ended;
    expect(outcomeOf(first.chunks())).toMatchObject({ outcome: 'stopped' });
    expect(run.prompt.signal.aborted).toBe(true);
    const next = await agent.run(1);
    next.text('Whole');
    next.end();
    await second.ended;
    expect(second.text()).toBe('Whole');
    expect(stored().slice(1)).toEqual(['Whole']);
    await eventually(() => finished.length === 2, 'onFinish');
    expect(finished.map(({ outcome }) => outcome.status)).toEqual(['stopped', 'finished']);
  });

  it('stops a turn that answers a later message', async () => {
    const { agent, carl, first, run, stored } = await startAnswering();
    run.end();
    await first.ended;
    const second = openSse(await carl.post(chatBody('two')));
    await agent.run(1);
    const third = openSse(await carl.post(editBody('u-one', 'uno')));
    await second.ended;
    (await agent.run(2)).end();
    await third.ended;
    expect(stored()).toEqual(['uno', '']);
  });

  it.each([
    ['a message of another person', regenerateBody('one'), 'replaces-others'],
    ['an unknown answer', regenerateBody('one', { messageId: 'unknown' }), 'conversation-changed'],
  ])('is refused for %s, and the turn goes on', async (_, body, code) => {
    const { user, first, run } = await startAnswering();
    const refused = await refusal(await user('cora').post(body));
    expect(refused).toMatchObject({ status: 409, code });
    run.text(' and whole');
    run.end();
    await first.ended;
    expect(first.text()).toBe('Half and whole');
  });

  it('is refused while a prompt of another person waits behind it, and the turn goes on', async () => {
    const { agent, carl, user, session, first, run } = await startAnswering();
    const waiting = openSse(await user('cora').post(chatBody('two')));
    await eventually(() => session.queue.size === 1, 'its place in the queue');
    const refused = await refusal(await carl.post(regenerateBody('one')));
    expect(refused).toMatchObject({ status: 409, code: 'still-answered' });
    run.end();
    await first.ended;
    expect(outcomeOf(first.chunks())).toMatchObject({ outcome: 'finished' });
    (await agent.run(1)).end();
    await waiting.ended;
  });

  it.each([[{}], [{ 'x-sabir-resume': '1' }]])(
    'attaches and stops nothing when it is sent again with the headers %j',
    async (headers) => {
      const { agent, carl, stored } = await startAnswering();
      for (const body of [regenerateBody('one'), editBody('u-one', 'uno')]) {
        const sent = await Promise.all([carl.post(body), carl.post(body)]);
        const run = await agent.run(agent.runs.length - 1);
        sent.push(await carl.post(body, { headers }));
        expect(new Set(sent.map(turnOf)).size).toBe(1);
        expect(run.prompt.signal.aborted).toBe(false);
        run.text('Whole');
        run.end();
        for (const sse of sent.map(openSse)) await sse.ended;
      }
      expect(agent.runs).toHaveLength(3);
      expect(stored()).toEqual(['uno', 'Whole']);
    },
  );

  it('waits for an agent that needs a while to stop', async () => {
    const answers = ['Half', 'Whole'];
    const { carl, session } = startHosted({
      sessions: {
        agent: () => ({
          name: 'slow',
          async *prompt({ signal }) {
            const delta = answers.shift() as string;
            yield { type: 'text-delta', delta } as const;
            if (delta === 'Whole') return;
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
            await new Promise((resolve) => setTimeout(resolve, 1_500));
          },
        }),
      },
    });
    const first = openSse(await carl.post(chatBody('one')));
    await first.until(() => first.text());
    const second = openSse(await carl.post(regenerateBody('one')));
    await second.ended;
    expect(second.text()).toBe('Whole');
    expect(saysOf(session.storage.messages())).toEqual(['one', 'Whole']);
  });
});

describe('a regenerate or an edit of a prompt that waits', () => {
  async function startWaiting() {
    const given = await startAnswering();
    const waiting = openSse(await given.carl.post(chatBody('two')));
    await eventually(() => given.session.queue.size === 1, 'its place in the queue');
    return { ...given, waiting };
  }

  it.each([
    ['an edit', editBody('u-two', 'due'), 'due'],
    ['a regenerate', regenerateBody('two'), 'two'],
  ])('by its author takes its place: %s', async (_, body, text) => {
    const { agent, carl, session, run, first, waiting, stored } = await startWaiting();
    const edited = openSse(await carl.post(body));
    await waiting.ended;
    expect(session.queue.list().map(({ excerpt }) => excerpt)).toEqual([text]);
    run.end();
    await first.ended;
    (await agent.run(1)).end();
    await edited.ended;
    expect(stored()).toEqual(['one', 'Half', text, '']);
    expect(session.storage.messages()[2]?.id).toBe('u-two');
  });

  it('by another person is refused', async () => {
    const { agent, user, session, run, first, waiting } = await startWaiting();
    const refused = await refusal(await user('cora').post(editBody('u-two', 'forged')));
    expect(refused).toMatchObject({ status: 409, code: 'still-answered' });
    expect(session.queue.size).toBe(1);
    run.end();
    (await agent.run(1)).end();
    await Promise.all([first.ended, waiting.ended]);
  });
});
