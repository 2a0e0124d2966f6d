import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  chatBody,
  editBody,
  eventually,
  openSse,
  refusal,
  regenerateBody,
} from '../../test/gateway-client.ts';
import { type HostedOptions, startHosted, turnOf } from '../../test/hosted-gateway.ts';
import { CLIENTS, openPage, saysOf } from '../../test/stock-pages.ts';
import type { UIMessage } from '../core/message.ts';
import type { Role } from '../core/roles.ts';
import { sqliteSessionStore } from '../platforms/node/sessions.ts';
import type { SessionNotice } from '../sessions/index.ts';

const idsOf = (messages: { id: string }[]) => messages.map(({ id }) => id);

/** A gateway whose agent answers at once, with a number that grows. */
function start(options: HostedOptions = {}) {
  let answers = 0;
  const asked: { text: string; trigger: string; replaces?: string; history: string[] }[] = [];
  const given = startHosted({
    ...options,
    sessions: {
      agent: () => ({
        name: 'counting',
        needsHistory: true,
        async *prompt({ text, trigger, replaces, messages }) {
          const history = saysOf(messages);
          asked.push({ text, trigger, ...(replaces !== undefined && { replaces }), history });
          yield { type: 'text-delta', delta: `Answer ${++answers} to ${text}` } as const;
        },
      }),
      ...options.sessions,
    },
  });
  const notices: SessionNotice[] = [];
  given.session.subscribe((notice) => void notices.push(notice));
  const history = async (name = 'carl') =>
    (await (await given.user(name).messages()).json()) as UIMessage[];
  return { ...given, asked, notices, history };
}

describe.each(CLIENTS)('a conversation of stock $name', ({ name }) => {
  it('shows the same after a reload as before, after every way to regenerate', async () => {
    const { gateway, asked, notices, session } = start();
    const page = await openPage(name, gateway);
    await page.chat.sendMessage({ text: 'one' });
    await page.chat.sendMessage({ text: 'two' });
    const expectReloaded = async (shown: string[]) => {
      expect(page.chat.error).toBeUndefined();
      expect(page.shown()).toEqual(shown);
      const reloaded = await openPage(name, gateway);
      expect(reloaded.shown()).toEqual(shown);
      expect(reloaded.ids()).toEqual(page.ids());
    };
    await expectReloaded(['one', 'Answer 1 to one', 'two', 'Answer 2 to two']);
    const [first, , second, answer] = page.ids();
    await page.chat.regenerate();
    await expectReloaded(['one', 'Answer 1 to one', 'two', 'Answer 3 to two']);
    expect(asked.at(-1)).toEqual({
      text: 'two',
      trigger: 'regenerate-message',
      replaces: answer,
      history: ['one', 'Answer 1 to one', 'two'],
    });
    await page.chat.regenerate({ messageId: page.ids()[3] });
    await page.chat.regenerate({ messageId: second });
    await expectReloaded(['one', 'Answer 1 to one', 'two', 'Answer 5 to two']);
    await page.chat.regenerate({ messageId: page.ids()[1] });
    await expectReloaded(['one', 'Answer 6 to one']);
    expect(page.ids()[0]).toBe(first);
    expect(asked.at(-1)?.history).toEqual(['one']);
    // All of it is kept, and each names the prompt that replaced it.
    const replaced = notices.flatMap((notice) => (notice.type === 'replaced' ? notice : []));
    expect(replaced).toHaveLength(4);
    for (const { prompt, messages } of replaced) {
      expect(session.storage.replacedMessages(prompt.promptId)).toEqual(messages);
    }
    expect(saysOf(replaced.at(-1)?.messages ?? [])).toEqual([
      ...['one', 'Answer 1 to one', 'two', 'Answer 5 to two'],
    ]);
  });

  it('shows the same after a reload as before, after an edit', async () => {
    const { gateway, asked } = start();
    const page = await openPage(name, gateway);
    for (const text of ['one', 'two', 'three']) await page.chat.sendMessage({ text });
    const [, , second] = page.ids();
    const edit = async (text: string) => {
      await page.chat.sendMessage({ text, messageId: second } as { text: string });
      const reloaded = await openPage(name, gateway);
      expect(reloaded.shown()).toEqual(page.shown());
      expect(reloaded.ids()).toEqual(page.ids());
      return page.shown();
    };
    expect(await edit('deux')).toEqual(['one', 'Answer 1 to one', 'deux', 'Answer 4 to deux']);
    expect(asked.at(-1)).toEqual({
      text: 'deux',
      trigger: 'submit-message',
      replaces: second,
      history: ['one', 'Answer 1 to one', 'deux'],
    });
    expect(await edit('zwei')).toEqual(['one', 'Answer 1 to one', 'zwei', 'Answer 5 to zwei']);
    // The same words as before are another edit, not a repeat of the first one.
    expect(await edit('deux')).toEqual(['one', 'Answer 1 to one', 'deux', 'Answer 6 to deux']);
    // A page that was reloaded names what the server knows.
    const reloaded = await openPage(name, gateway);
    await reloaded.chat.sendMessage({ text: 'due', messageId: second } as { text: string });
    await reloaded.chat.regenerate();
    expect(reloaded.shown()).toEqual(['one', 'Answer 1 to one', 'due', 'Answer 8 to due']);
    expect((await openPage(name, gateway)).shown()).toEqual(reloaded.shown());
  });

  it('keeps what other people wrote: a stale tab replaces nothing that it does not show', async () => {
    const { gateway, history } = start();
    const page = await openPage(name, gateway);
    await page.chat.sendMessage({ text: 'one' });
    const other = await openPage(name, gateway, { as: 'cora' });
    await other.chat.sendMessage({ text: 'two' });
    const before = await history();
    expect(saysOf(before)).toEqual(['one', 'Answer 1 to one', 'two', 'Answer 2 to two']);
    const [mine, answer] = page.ids();
    const tries = [
      () => page.chat.regenerate(),
      () => page.chat.regenerate({ messageId: answer }),
      () => page.chat.sendMessage({ text: 'uno', messageId: mine } as { text: string }),
    ];
    for (const [at, attempt] of tries.entries()) {
      page.chat.messages = before.slice(0, 2);
      await attempt();
      const code = at === 0 ? 'conversation-changed' : 'replaces-others';
      expect(page.chat.error?.message).toContain(code);
      expect(await history()).toEqual(before);
    }
    // What follows is sent all the same.
    page.chat.messages = before.slice(0, 2);
    await page.chat.sendMessage({ text: 'three' });
    expect(saysOf(await history()).slice(4)).toEqual(['three', 'Answer 3 to three']);
  });

  it('refuses a stale tab that regenerates or edits a message which was replaced meanwhile', async () => {
    const { gateway, history } = start();
    const page = await openPage(name, gateway);
    for (const text of ['one', 'two']) await page.chat.sendMessage({ text });
    const stale = await openPage(name, gateway);
    const others = await openPage(name, gateway, { as: 'cora' });
    const [first, , second, answer] = page.ids();
    await page.chat.sendMessage({ text: 'uno', messageId: first } as { text: string });
    const before = await history();
    expect(saysOf(before)).toEqual(['uno', 'Answer 3 to uno']);
    for (const { chat } of [stale, others]) {
      const shown = chat.messages;
      const tries = [
        () => chat.regenerate(),
        () => chat.regenerate({ messageId: answer }),
        () => chat.regenerate({ messageId: second }),
        () => chat.sendMessage({ text: 'due', messageId: second } as { text: string }),
      ];
      for (const attempt of tries) {
        chat.messages = shown;
        await attempt();
        expect(chat.error?.message).toContain('conversation-changed');
        expect(await history()).toEqual(before);
      }
    }
  });

  it('takes a message that never arrived when its page tries again', async () => {
    const { gateway } = start();
    const page = await openPage(name, gateway);
    await page.chat.sendMessage({ text: 'one' });
    const lost = { id: 'lost', role: 'user', parts: [{ type: 'text', text: 'two' }] } as const;
    page.chat.messages = [...page.chat.messages, lost as unknown as UIMessage];
    await page.chat.regenerate();
    expect(page.shown()).toEqual(['one', 'Answer 1 to one', 'two', 'Answer 2 to two']);
    const reloaded = await openPage(name, gateway);
    expect(reloaded.shown()).toEqual(page.shown());
    expect(reloaded.ids()).toEqual(page.ids());
  });
});

describe('a request to regenerate or edit', () => {
  const say = (text: string, more: object = {}) => chatBody(text, more);

  async function startWith(texts: [user: string, text: string][], options?: HostedOptions) {
    const given = start(options);
    const send = async (name: string, body: object) => {
      const response = await given.user(name).post(body);
      const sse = openSse(response);
      await sse.ended;
      return { status: response.status, turn: turnOf(response), text: sse.text(), raw: sse.raw() };
    };
    for (const [name, text] of texts) await send(name, say(text));
    return { ...given, send };
  }

  it.each<[string, Role, number]>([
    ['carl', 'collaborator', 200],
    ['olga', 'owner', 200],
    ['cora', 'collaborator', 409],
    ['vera', 'viewer', 404],
  ])('of %s, a %s, for a message of carl’s is answered with %i', async (name, _, status) => {
    const { send, history, session } = await startWith([['carl', 'one']]);
    for (const body of [regenerateBody('one'), editBody('u-one', 'uno')]) {
      const before = await history();
      expect(await send(name, body)).toMatchObject({ status });
      const after = await history();
      expect(after).toHaveLength(2);
      if (status !== 200) expect(after).toEqual(before);
      else expect(after[1]?.id).not.toBe(before[1]?.id);
    }
    const [question] = session.storage.messages();
    // What an owner regenerates is still its author's; what an owner writes is the owner's.
    expect(question?.authorId).toBe(status === 200 ? name : 'carl');
  });

  it('keeps the words and the author of a message whose answer an owner regenerates', async () => {
    const { send, session, asked } = await startWith([['carl', 'one']]);
    const forged = regenerateBody('one', {
      messages: [{ ...say('forged').messages[0], id: 'u-one' }],
    });
    expect((await send('olga', forged)).text).toBe('Answer 2 to one');
    expect(asked.at(-1)?.text).toBe('one');
    const [question] = session.storage.messages();
    expect(question).toMatchObject({ id: 'u-one', authorId: 'carl', parts: [{ text: 'one' }] });
    // It is still carl's to regenerate.
    expect((await send('carl', regenerateBody('one'))).text).toBe('Answer 3 to one');
    expect(session.storage.messages()[0]).toMatchObject({ authorId: 'carl' });
  });

  it('that would replace messages of others is refused to a collaborator, not to an owner', async () => {
    const { send, history } = await startWith([
      ['carl', 'one'],
      ['cora', 'two'],
    ]);
    expect(await send('carl', editBody('u-one', 'uno'))).toMatchObject({ status: 409 });
    expect(await history()).toHaveLength(4);
    expect(await send('olga', editBody('u-one', 'uno'))).toMatchObject({ status: 200 });
    expect(saysOf(await history())).toEqual(['uno', 'Answer 3 to uno']);
  });

  it('that is sent again attaches to the same turn, and replaces nothing twice', async () => {
    const { send, history, notices } = await startWith([['carl', 'one']]);
    const [, answer] = await history();
    for (const body of [
      regenerateBody('one', { messageId: answer?.id }),
      editBody('u-one', 'uno'),
    ]) {
      const first = await send('carl', body);
      const shown = await history();
      const second = await send('carl', body);
      expect(second).toEqual(first);
      expect(await history()).toEqual(shown);
    }
    expect(notices.filter(({ type }) => type === 'replaced')).toHaveLength(2);
  });

  it('is refused while a turn of its channel runs, not while one of another does', async () => {
    const { agent, carl, user, session } = startHosted();
    const first = openSse(await carl.post(say('one')));
    (await agent.run()).end();
    await first.ended;
    const slack = openSse(await carl.post(say('two'), { query: 'channelType=slack&channelId=c9' }));
    await agent.run(1);
    const regenerated = openSse(await carl.post(regenerateBody('one')));
    await eventually(() => session.queue.size === 1, 'its place in the queue');
    const edited = await refusal(await user('olga').post(editBody('u-one', 'uno')));
    expect(edited).toMatchObject({ status: 409, code: 'still-answered' });
    for (const at of [1, 2]) (await agent.run(at)).end();
    await Promise.all([slack.ended, regenerated.ended]);
  });

  it('puts back what it replaced when it is withdrawn from the queue', async () => {
    const { agent, carl, user, session } = startHosted();
    const first = openSse(await carl.post(say('one')));
    (await agent.run()).end();
    await first.ended;
    const before = session.storage.messages();
    const slack = openSse(await carl.post(say('two'), { query: 'channelType=slack&channelId=c9' }));
    await agent.run(1);
    const notices: SessionNotice['type'][] = [];
    session.subscribe(({ type }) => void notices.push(type));
    const regenerated = openSse(await user('carl').post(regenerateBody('one', { id: 'c2' })));
    await eventually(() => session.queue.size === 1, 'its place in the queue');
    expect(session.storage.message('u-one')).toBeUndefined();
    expect((await carl.stop('c2')).status).toBe(202);
    await regenerated.ended;
    const channel = { channelType: 'web', channelId: 'default' };
    expect(session.storage.messages({ channel })).toEqual(before);
    expect(notices.slice(0, 4)).toEqual(['replaced', 'queued', 'withdrawn', 'restored']);
    (await agent.run(1)).end();
    await slack.ended;
  });

  it('of an answer that the session does not have says what to do', async () => {
    const { carl, history } = await startWith([['carl', 'one']]);
    const refused = await refusal(await carl.post(regenerateBody('one', { messageId: 'gone' })));
    expect(refused).toMatchObject({ status: 409, code: 'conversation-changed' });
    expect(await history()).toHaveLength(2);
  });

  it('that names an unknown message, or one of another channel, to edit adds a message', async () => {
    const { send, carl, session, history } = await startWith([['carl', 'one']]);
    expect(await send('carl', editBody('unknown', 'two'))).toMatchObject({ status: 200 });
    expect(saysOf(await history())).toEqual([
      ...['one', 'Answer 1 to one', 'two', 'Answer 2 to two'],
    ]);
    const elsewhere = { query: 'channelType=slack&channelId=c9' };
    await openSse(await carl.post(editBody('u-one', 'uno'), elsewhere)).ended;
    expect(await history()).toHaveLength(4);
    // The id is that of another message: this one has its prompt's.
    const ids = idsOf(session.storage.messages());
    expect(new Set(ids).size).toBe(6);
  });

  it('is reported to onFinish with the user’s message, the trigger and what it replaced', async () => {
    const { send, finished, history } = await startWith([['carl', 'one']]);
    const [, answer] = await history();
    await send('carl', regenerateBody('one'));
    const sent = editBody('u-one', 'uno');
    const withMetadata = { ...sent.messages[0], metadata: { draft: 2 } };
    await send('carl', { ...sent, messages: [withMetadata] });
    await eventually(() => finished.length === 3, 'onFinish');
    const [first, second, third] = finished;
    const one = chatBody('one').messages[0];
    expect(first).toMatchObject({ userMessage: one, trigger: 'submit-message' });
    expect(first).not.toHaveProperty('replaces');
    const trigger = 'regenerate-message';
    expect(second).toMatchObject({ userMessage: one, trigger, replaces: answer?.id });
    const uno = { userMessage: withMetadata, trigger: 'submit-message', replaces: 'u-one' };
    expect(third).toMatchObject(uno);
  });

  it('is kept over a restart, on SQLite', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sabir-replacing-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const open = () => ({ store: sqliteSessionStore({ file: join(folder, 'sabir.db') }) });
    const texts: [string, string][] = [
      ['carl', 'one'],
      ['carl', 'two'],
    ];
    const first = await startWith(texts, { sessions: open() });
    await first.send('carl', regenerateBody('two'));
    const shown = await first.history();
    expect(saysOf(shown)).toEqual(['one', 'Answer 1 to one', 'two', 'Answer 3 to two']);
    await first.close();
    const second = await startWith([], { sessions: open() });
    expect(await second.history()).toEqual(shown);
    const edited = await second.send('carl', editBody('u-one', 'uno'));
    await second.close();
    const third = await startWith([], { sessions: open() });
    expect(saysOf(await third.history())).toEqual(['uno', 'Answer 1 to uno']);
    // The same POST finds its turn, which replaces nothing again.
    expect((await third.send('carl', editBody('u-one', 'uno'))).turn).toBe(edited.turn);
    expect(third.asked).toEqual([]);
  });
});
