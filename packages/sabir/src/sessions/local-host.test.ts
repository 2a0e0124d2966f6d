import { describe, expect, it, vi } from 'vitest';
import { scriptedAgent } from '../../test/scripted-agent.ts';
import { createSessionRig, type SessionRig, settled, textOf } from '../../test/session-rig.ts';
import type { Agent } from './index.ts';

const ask = (n: number, content: string) => ({
  type: 'prompt',
  content,
  promptId: `p${n}`,
  turnId: `t${n}`,
});

/** An agent that goes on after a stop, until the test says otherwise. */
function createSlowAgent() {
  const gates: PromiseWithResolvers<void>[] = [];
  const agent = {
    name: 'slow',
    start: vi.fn(),
    close: vi.fn(),
    async *prompt() {
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      yield { type: 'text-delta', delta: 'Half ' } as const;
      await gate.promise;
      yield { type: 'text-delta', delta: 'late' } as const;
    },
  } satisfies Agent;
  return { agent, gates };
}

const outcomesOf = ({ storage }: SessionRig) =>
  [1, 2].map((n) => storage.promptInfo('messageId', `t${n}`)?.outcome);

describe('an agent in the process of its session', () => {
  it('answers one prompt after the other, and no runner is called', async () => {
    const agent = scriptedAgent();
    const rig = createSessionRig({ agent: () => agent });
    const ann = rig.client();
    ann.say(ask(1, 'everything'));
    ann.say(ask(2, 'text'));
    await settled();
    expect(ann.events[0]).toMatchObject({ data: { runnerConnected: true } });
    expect(ann.of('message.finalize')).toMatchObject([
      { turnId: 't1', reason: 'end_turn' },
      { turnId: 't2', reason: 'end_turn' },
    ]);
    expect(textOf(rig.storage.messages().at(-1))).toBe('Hello, world!');
    expect(agent.prompts).toMatchObject([
      { messageId: 't1', text: 'everything', user: { id: 'ann', name: 'ann' } },
      { messageId: 't2', messages: [{ id: 'p2' }] },
    ]);
    expect(ann.of('git-state')).toEqual([{ type: 'git-state', branch: 'main' }]);
    expect(rig.runnersWanted).toBe(0);
  });

  it('gets what was said before in the channel if it needs the history', async () => {
    const agent = scriptedAgent({ needsHistory: true });
    const rig = createSessionRig({ agent: () => agent });
    const ann = rig.client();
    ann.say(ask(1, 'text'));
    await settled();
    ann.say(ask(2, 'text'));
    await settled();
    expect(agent.prompts[1]?.messages.map(({ id }) => id)).toEqual(['p1', 't1', 'p2']);
  });

  it('is stopped at once for its viewers, and gets the next prompt when it has ended', async () => {
    const { agent, gates } = createSlowAgent();
    const rig = createSessionRig({ agent: () => agent });
    const ann = rig.client();
    ann.say(ask(1, 'One'));
    ann.say(ask(2, 'Two'));
    await settled();
    ann.say({ type: 'abort' });
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([{ turnId: 't1', reason: 'canceled' }]);
    expect(rig.session.running).toBeUndefined();
    expect(gates).toHaveLength(1);
    gates[0]?.resolve();
    await settled();
    expect(gates).toHaveLength(2);
    gates[1]?.resolve();
    await settled();
    expect(outcomesOf(rig)).toEqual(['stopped', 'finished']);
    expect(rig.storage.messages().map(textOf)).toEqual(['One', 'Half ', 'Two', 'Half late']);
    expect(agent.close).not.toHaveBeenCalled();
  });

  it('is closed and started anew when it does not stop', async () => {
    const { agent, gates } = createSlowAgent();
    const rig = createSessionRig({ agent: () => agent, timing: { stopMs: 20 } });
    const ann = rig.client();
    ann.say(ask(1, 'One'));
    ann.say(ask(2, 'Two'));
    await settled();
    ann.say({ type: 'abort' });
    await vi.waitFor(() => expect(gates).toHaveLength(2));
    expect(agent.close).toHaveBeenCalledTimes(1);
    expect(agent.start).toHaveBeenCalledTimes(2);
    // What the first run still says is of no turn.
    gates[0]?.resolve();
    gates[1]?.resolve();
    await settled();
    expect(outcomesOf(rig)).toEqual(['stopped', 'finished']);
    expect(textOf(rig.storage.messages()[1])).toBe('Half ');
  });

  it('that cannot be made fails the prompt with its text, and is made again for the next', async () => {
    let made = 0;
    const logged: unknown[] = [];
    const rig = createSessionRig({
      agent() {
        if (made++ === 0) throw new Error('There is no such agent.');
        return scriptedAgent();
      },
      logger: { warn: () => undefined, error: (_, details) => void logged.push(details?.error) },
    });
    const ann = rig.client();
    ann.say(ask(1, 'text'));
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([
      { turnId: 't1', reason: 'error', error: 'There is no such agent.' },
    ]);
    expect(logged).toMatchObject([{ message: 'There is no such agent.' }]);
    ann.say(ask(2, 'text'));
    await settled();
    expect(outcomesOf(rig)).toEqual(['failed', 'finished']);
    expect(made).toBe(2);
  });

  it('that cannot be started fails the prompt with its text, and is started again for the next', async () => {
    const start = vi.fn().mockRejectedValueOnce(new Error('No key.'));
    const rig = createSessionRig({ agent: () => ({ ...scriptedAgent(), start }) });
    const ann = rig.client();
    ann.say(ask(1, 'text'));
    await settled();
    ann.say(ask(2, 'text'));
    await settled();
    expect(ann.of('message.finalize')).toMatchObject([
      { turnId: 't1', reason: 'error', error: 'No key.' },
      { turnId: 't2', reason: 'end_turn' },
    ]);
  });

  it('asks people, and gets the first answer, or that the time is over', async () => {
    const rig = createSessionRig({
      agent: () => scriptedAgent(),
      timing: { questionMs: 200 },
      turns: { leaseMs: 60 },
    });
    const ann = rig.client();
    ann.say(ask(1, 'question'));
    await settled();
    ann.say({ type: 'answer', questionId: 'q1', answer: 'Yes' });
    await settled();
    ann.say(ask(2, 'question'));
    await vi.waitFor(() => expect(outcomesOf(rig)).toEqual(['finished', 'finished']));
    await settled();
    const [, first, , second] = rig.storage.messages().map(textOf);
    expect(first).toContain('Answered: Yes');
    expect(second).toContain('Answered: nobody');
    expect(ann.of('status').map(({ data }) => data)).toEqual(
      expect.arrayContaining([
        { questionAnswered: 'q1', answer: 'Yes' },
        { questionExpired: 'q1' },
      ]),
    );
    await rig.close();
  });

  it('is gone with its process: the turn fails, and the next prompt is answered', async () => {
    const rig = createSessionRig({ agent: () => scriptedAgent() });
    const ann = rig.client();
    ann.say(ask(1, 'slow'));
    ann.say(ask(2, 'text'));
    await settled();
    rig.restart();
    const bob = rig.client('bob');
    await settled();
    expect(outcomesOf(rig)).toEqual(['failed', 'finished']);
    expect(rig.storage.promptInfo('messageId', 't1')?.error).toMatch(/restarted/i);
    expect(textOf(rig.storage.messages()[1])).toBe('Half ');
    expect(bob.events[0]).toMatchObject({ type: 'init' });
    expect(rig.session.isIdle).toBe(true);
  });

  it('leaves prompts to a runner while one is connected, and the turn of a runner to that runner', async () => {
    const agent = scriptedAgent();
    const rig = createSessionRig({ agent: () => agent });
    const runner = rig.runner('r1');
    rig.client().say(ask(1, 'text'));
    await settled();
    const turnId = rig.turnIdOf('t1');
    expect(runner.prompts()).toEqual(['t1']);
    runner.text('t1', 'Half ');
    await settled();
    rig.restart();
    await settled();
    const back = rig.runner('r1', { turnId, known: [turnId] });
    await settled();
    back.text('t1', 'more');
    back.finish('t1');
    await settled();
    back.drop();
    rig.client().say(ask(2, 'text'));
    await settled();
    expect(rig.storage.messages().map(textOf)).toEqual([
      ...['text', 'Half more', 'text', 'Hello, world!'],
    ]);
  });
});
