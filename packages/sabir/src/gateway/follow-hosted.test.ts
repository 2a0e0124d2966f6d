import { describe, expect, it } from 'vitest';
import { openFollow } from '../../test/follow-client.ts';
import { chatBody, openSse } from '../../test/gateway-client.ts';
import { type HostedOptions, startHosted, turnOf } from '../../test/hosted-gateway.ts';
import type { UIMessage } from '../core/message.ts';

const DETACH = { headers: { 'x-sabir-detach': '1' } };

function start(options: HostedOptions = {}) {
  const hosted = startHosted(options);
  const follow = async (name: string, chatId = 'c1', query = '') => {
    const follower = openFollow(await hosted.user(name).follow(chatId, { query }));
    await follower.until(() => follower.state());
    return follower;
  };
  /** A turn of Carl's that has said one word. */
  const begin = async (text: string) => {
    const response = await hosted.carl.post(chatBody(text), DETACH);
    const posted = openSse(response);
    const run = await hosted.agent.run();
    run.text('word');
    await posted.until(() => posted.text());
    return { turnId: turnOf(response), posted, run };
  };
  return { ...hosted, follow, begin };
}

describe('A follower of a session', () => {
  it('sees what waits, whose it is, and each of it turn by turn', async () => {
    const { agent, user, begin, follow } = start();
    const [carl, cora] = [await follow('carl'), await follow('cora')];
    const first = await begin('one');
    const response = await user('cora').post(chatBody('two'), DETACH);
    const turnId = turnOf(response);
    const waiting = {
      turnId,
      messageId: expect.any(String),
      position: 1,
      message: { role: 'user', parts: [{ type: 'text', text: 'two' }] },
      author: { id: 'cora' },
    };
    for (const [follower, isMine] of [
      [carl, false],
      [cora, true],
    ] as const) {
      await follower.until(() => follower.count('queue'));
      expect(follower.state()).toMatchObject({
        running: first.turnId,
        queue: [{ ...waiting, isMine }],
      });
    }
    // One that comes now is shown it at once.
    const late = await follow('olga');
    expect(late.controls()[0]).toMatchObject({ queue: [{ turnId, isMine: false }] });
    first.run.end();
    const second = await agent.run(1);
    second.text('second');
    second.end();
    for (const follower of [carl, cora, late]) {
      await follower.untilEnd(1);
      expect(follower.controls('turn')).toMatchObject([
        { turnId: first.turnId, message: { parts: [{ text: 'one' }] }, author: { id: 'carl' } },
        { turnId, message: { parts: [{ text: 'two' }] }, author: { id: 'cora' }, history: turnId },
      ]);
      expect(follower.textOf(turnId)).toBe('second');
      await follower.until(() => follower.count('queue') === 0);
    }
    await openSse(response).ended;
  });

  it('sees with a regenerated answer which message it replaces', async () => {
    const { agent, carl, begin, follow } = start();
    const follower = await follow('cora');
    const { run, posted } = await begin('one');
    run.end();
    await posted.ended;
    await follower.untilEnd(0);
    const [first] = follower.controls('turn') as unknown as {
      messageId: string;
      message: UIMessage;
    }[];
    const messages = [first?.message];
    const body = { id: 'c1', messages, trigger: 'regenerate-message', messageId: first?.messageId };
    const again = openSse(await carl.post(body, DETACH));
    const second = await agent.run(1);
    second.text('better');
    second.end();
    await again.ended;
    await follower.untilEnd(1);
    expect(follower.controls('turn')[1]).toMatchObject({
      replaces: first?.messageId,
      message: { id: first?.message.id },
    });
  });

  it('sees a prompt go from the queue that its author withdraws, and no turn', async () => {
    const { user, begin, follow } = start();
    const follower = await follow('carl');
    const first = await begin('one');
    const response = await user('cora').post(chatBody('two'), DETACH);
    const turnId = turnOf(response);
    await follower.until(() => follower.count('queue'));
    expect((await user('carl').stop('c1', { turnId })).status).toBe(204);
    expect((await user('cora').stop('c1', { turnId })).status).toBe(202);
    await follower.until(() => follower.count('queue') === 0);
    first.run.end();
    await follower.untilEnd();
    await openSse(response).ended;
    expect(follower.controls('turn')).toHaveLength(1);
  });

  it('sees only the beginning of a long prompt, and a short one behind it whole', async () => {
    const { user, begin, follow } = start();
    const follower = await follow('carl');
    const first = await begin('one');
    const text = 'long '.repeat(20_000);
    const response = await user('cora').post(chatBody(text), DETACH);
    const short = await user('cora').post(chatBody('short'), DETACH);
    await follower.until(() => follower.count('queue') === 2);
    expect(follower.state()?.queue).toMatchObject([
      { isExcerpt: true, message: { parts: [{ type: 'text', text: text.slice(0, 500) }] } },
      { message: { parts: [{ type: 'text', text: 'short' }] } },
    ]);
    first.run.end();
    expect(await follower.untilTurn(1)).toMatchObject({ message: { parts: [{ text }] } });
    await Promise.all([response.body?.cancel(), short.body?.cancel()]);
  });

  it('counts as a person who is there, once a user, until a while after the last has left', async () => {
    const { session, follow } = start({ gateway: { timing: { lingerMs: 20 } } });
    const followers = [await follow('carl'), await follow('carl', 'c2'), await follow('vera')];
    const [carl, again, vera] = followers;
    const ids = () => session.people.users().map(({ id }) => id);
    expect(ids()).toEqual(['carl', 'vera']);
    await carl?.until(() => carl.count('people') === 2);
    expect(carl?.state()?.people).toEqual([{ id: 'carl' }, { id: 'vera' }]);
    await vera?.leave();
    await carl?.until(() => carl.count('people') === 1);
    await again?.leave();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(ids()).toEqual(['carl']);
  });

  it('gets the events of the session, and late the models that it knows', async () => {
    const { session, begin, follow } = start();
    const follower = await follow('carl');
    const { run, posted } = await begin('one');
    run.prompt.emit({ type: 'title', title: 'Ports' });
    run.prompt.emit({ type: 'models', models: ['a'] });
    await follower.until(() => follower.controls('event').length === 2);
    expect(follower.controls('event')).toMatchObject([
      { event: 'follow.event' },
      { event: 'follow.event' },
    ]);
    expect(follower.raw()).toContain('data: {"event":{"type":"title","title":"Ports"}}');
    expect(session.models).toEqual(['a']);
    const late = await follow('cora');
    await late.until(() => late.raw().includes('{"event":{"type":"models","models":["a"]}}'));
    run.end();
    await posted.ended;
  });

  it('that does not take the events of the session is let go', async () => {
    const { user, begin, carl } = start({ gateway: { limits: { viewerBacklogBytes: 100_000 } } });
    const response = await user('cora').follow();
    const { run, posted } = await begin('one');
    for (let at = 0; at < 5; at++) run.prompt.emit({ type: 'diff', text: 'x'.repeat(30_000) });
    const gone = { sabir_followers: 0, sabir_slow_viewers_total: 1 };
    await expect.poll(() => carl.metrics()).toMatchObject(gone);
    run.end();
    await posted.ended;
    await response.body?.cancel();
  });

  it('sees whether an agent is there', async () => {
    const { session, follow } = start({ sessions: { agent: undefined as never } });
    const follower = await follow('carl');
    expect(follower.state()).toMatchObject({ agent: { isConnected: false } });
    const events = session.connectRunner({ send: () => undefined, close: () => undefined });
    events.message(JSON.stringify({ type: 'hello', protocol: 1 }));
    await follower.until(() => Object(follower.state()?.agent).isConnected);
    events.close();
    await follower.until(() => !Object(follower.state()?.agent).isConnected);
  });

  it('sees its own channel alone', async () => {
    const { user, agent, follow } = start();
    const query = 'channelType=web&channelId=other';
    const [here, there] = [await follow('carl'), await follow('carl', 'c1', query)];
    const response = await user('carl').post(chatBody('one'), { query });
    (await agent.run()).end();
    await openSse(response).ended;
    await there.untilEnd();
    expect(here.controls('turn')).toEqual([]);
  });

  it('is let go when its session ends in this process', async () => {
    const { sessions, follow } = start();
    const follower = await follow('carl');
    await sessions.close(0);
    await follower.ended;
  });
});
