/** A regenerate and an edit behind a gateway whose sessions are on a server elsewhere. */
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  chatBody,
  createTestGateway,
  createUser,
  editBody,
  eventually,
  openSse,
  refusal,
  regenerateBody,
} from '../../test/gateway-client.ts';
import { createLedAgent } from '../../test/led-agent.ts';
import { createLinkRig } from '../../test/link-rig.ts';
import { CLIENTS, openPage, saysOf } from '../../test/stock-pages.ts';
import type { FinishedTurn, GatewayTiming } from './index.ts';

async function start(timing: Partial<GatewayTiming> = {}) {
  const agent = createLedAgent();
  const rig = await createLinkRig({ host: 'agent', server: { agent: () => agent } });
  const finished: FinishedTurn[] = [];
  const onFinish = (turn: FinishedTurn) => void finished.push(turn);
  const gateway = createTestGateway(rig.upstream, {
    onFinish,
    timing: { acceptMs: 250, ...timing },
  });
  onTestFinished(() => rig.close());
  const answer = async (text: string) => {
    const run = await agent.run(answered);
    answered++;
    run.text(text);
    run.end();
  };
  let answered = 0;
  const stored = () => saysOf(rig.sessions.hold('s1').session.storage.messages());
  return {
    agent,
    rig,
    finished,
    gateway,
    answer,
    stored,
    user: (name: string) => createUser(gateway, name),
  };
}

describe.each(CLIENTS)('stock $name, on a linked session', ({ name }) => {
  it('regenerates and edits at once after a stop that only disconnects', async () => {
    const { agent, gateway, finished } = await start();
    const page = await openPage(name, gateway);
    const ask = async (asking: () => Promise<void>, isStopped: boolean) => {
      const at = agent.runs.length;
      const asked = asking();
      const run = await agent.run(at);
      run.text(`Answer ${at}`);
      await eventually(() => page.shown().at(-1) === `Answer ${at}`, 'the answer');
      if (isStopped) await page.chat.stop();
      else run.end();
      await asked;
      expect(page.chat.error).toBeUndefined();
    };
    await ask(() => page.chat.sendMessage({ text: 'one' }), true);
    await ask(() => page.chat.regenerate(), true);
    const edited = (text: string) => {
      const message = { text, messageId: page.ids()[0] } as { text: string };
      return page.chat.sendMessage(message);
    };
    await ask(() => edited('uno'), false);
    await ask(() => edited('one'), false);
    await ask(() => edited('uno'), false);
    const shown = ['uno', 'Answer 4'];
    expect(page.shown()).toEqual(shown);
    const reloaded = await openPage(name, gateway);
    expect(reloaded.shown()).toEqual(shown);
    expect(reloaded.ids()).toEqual(page.ids());
    await eventually(() => finished.length === 5, 'onFinish');
    expect(finished.map(({ outcome }) => outcome.status)).toEqual([
      ...['stopped', 'stopped', 'finished', 'finished', 'finished'],
    ]);
  });
});

describe('a regenerate or an edit on a linked session', () => {
  it('that the session refuses is answered with a status, and not given to onFinish', async () => {
    const { agent, finished, answer, stored, user } = await start({ acceptMs: 0 });
    const first = openSse(await user('carl').post(chatBody('one')));
    await answer('Answer');
    await first.ended;
    await eventually(() => finished.length === 1, 'onFinish');
    for (const body of [regenerateBody('one'), editBody('u-one', 'forged')]) {
      const refused = await refusal(await user('cora').post(body));
      expect(refused).toMatchObject({ status: 409, code: 'replaces-others' });
    }
    const second = openSse(await user('carl').post(chatBody('two')));
    await answer('Answer');
    await second.ended;
    await eventually(() => finished.length > 1, 'onFinish');
    expect(finished.map(({ userMessage }) => userMessage?.id)).toEqual(['u-one', 'u-two']);
    expect(agent.runs).toHaveLength(2);
    expect(stored()).toEqual(['one', 'Answer', 'two', 'Answer']);
  });

  it('that the session refuses does not stop what its user has running', async () => {
    const { agent, user, rig } = await start();
    const first = openSse(await user('carl').post(chatBody('one')));
    const run = await agent.run();
    run.text('Half');
    await first.until(() => first.text());
    const waiting = openSse(await user('cora').post(chatBody('two')));
    const { session } = rig.sessions.hold('s1');
    await eventually(() => session.queue.size === 1, 'its place in the queue');
    const refused = await refusal(await user('carl').post(regenerateBody('one')));
    expect(refused).toMatchObject({ status: 409, code: 'still-answered' });
    run.end();
    (await agent.run(1)).end();
    await Promise.all([first.ended, waiting.ended]);
    expect(first.text()).toBe('Half');
    expect(saysOf(session.storage.messages()).slice(0, 2)).toEqual(['one', 'Half']);
  });

  it('that is sent twice replaces once', async () => {
    const { agent, answer, user, stored } = await start();
    const first = openSse(await user('carl').post(chatBody('one')));
    await answer('Answer');
    await first.ended;
    for (const body of [regenerateBody('one'), editBody('u-one', 'uno')]) {
      const sent = [user('carl').post(body), user('carl').post(body)];
      await answer('Another');
      for (const sse of (await Promise.all(sent)).map(openSse)) {
        await sse.ended;
        expect(sse.text()).toBe('Another');
      }
    }
    expect(agent.runs).toHaveLength(3);
    expect(stored()).toEqual(['uno', 'Another']);
  });
});
