/**
 * What every agent is held to: each MUST above the `Agent` interface has its test here.
 *
 * An author's own runs it by giving a `setup`, whose agent does what the prompt's first word says:
 * - `text …` says "Hello, world!" and ends;
 * - `tool` calls a tool named `lookup`, which finds "42", says what it found, and ends;
 * - `toolerror` calls `lookup`, which fails, and ends;
 * - `ask` asks a question with two options, says "Answered: " and the answer, and ends;
 * - `fail` fails with "It broke.";
 * - `slow` says "Half " and never goes on;
 * - `steer`, where it can `steer`: waits for a message, says "Steered: " and its text, and ends.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toSource } from '../src/core/until-aborted.ts';
import { type Agent, type AgentFunction, toAgent } from '../src/turns/agent.ts';
import { type PromptRun, promptOf, runPrompt, until } from './run-prompt.ts';
import { trackTimers } from './upstream-turn.ts';

export type AgentRig = {
  agent: Agent | AgentFunction;
  /** How many runs, connections or whatever else the agent holds, where it can tell. */
  held?(): number;
  close?(): Promise<void>;
};

export function describeAgent(
  name: string,
  setup: () => Promise<AgentRig>,
  /** An agent may ask with options of its own; the first one is the answer that is given. */
  options = ['Yes', 'No'],
): void {
  describe(`agent ${name}`, () => {
    let rig: AgentRig;
    let agent: Agent;
    const ending = new AbortController();
    const [yes] = options;

    const start = async () => {
      rig = await setup();
      agent = toAgent(rig.agent);
      await agent.start?.({ sessionId: 's', signal: ending.signal, emit: () => undefined });
    };
    const run = (text: string) => runPrompt(agent, text);
    /** However it ended. Rejects if it did not. */
    const ended = async (turn: PromptRun) => {
      await turn.done.catch((error: Error) => {
        if (error.message === 'The agent never ended.') throw error;
      });
    };

    beforeEach(start);
    afterEach(async () => {
      await agent.close?.();
      await rig.close?.();
    });

    it('has a name', () => {
      expect(agent.name).not.toBe('');
    });

    it('gives the answer, and ends by returning', async () => {
      const turn = run('text please');
      await turn.done;
      expect(turn.text).toBe('Hello, world!');
      expect(turn.tools).toEqual([]);
      expect(turn.outcome).toMatchObject({ status: 'finished' });
    });

    it('answers each prompt by itself', async () => {
      for (const text of ['text 1', 'tool', 'text 2']) {
        const turn = run(text);
        await turn.done;
        expect(turn.text).toContain(text === 'tool' ? '42' : 'Hello, world!');
      }
    });

    it('tells of a tool from its input to its output', async () => {
      const turn = run('tool');
      await turn.done;
      expect(turn.tools).toMatchObject([{ type: 'tool-lookup', state: 'output-available' }]);
      expect(JSON.stringify(turn.tools[0]?.output)).toContain('42');
      expect(turn.tools[0]?.input).toBeInstanceOf(Object);
      const types = turn.chunks.map(({ type }) => type);
      expect(types.lastIndexOf('text-delta')).toBeGreaterThan(
        types.lastIndexOf('tool-output-available'),
      );
    });

    it('tells of a tool that failed, which is no failure of the turn', async () => {
      const turn = run('toolerror');
      await turn.done;
      expect(turn.tools).toMatchObject([{ type: 'tool-lookup', state: 'output-error' }]);
    });

    it('fails with words when something breaks, and answers the next prompt', async () => {
      await expect(run('fail').done).rejects.toThrow('It broke.');
      const next = run('text');
      await next.done;
      expect(next.text).toBe('Hello, world!');
    });

    it('asks, and goes on with the answer', async () => {
      const turn = run('ask');
      await until(() => turn.questions.length === 1);
      const [question] = turn.questions;
      expect(question?.text).not.toBe('');
      expect(question?.options).toEqual(options);
      turn.answer(yes);
      await turn.done;
      expect(turn.text).toBe(`Answered: ${yes}`);
      expect(turn.questions).toHaveLength(1);
    });

    it('ends also when no answer comes in time', async () => {
      const turn = run('ask');
      await until(() => turn.questions.length === 1);
      turn.expire();
      await ended(turn);
      expect(turn.text).not.toContain(`Answered: ${yes}`);
    });

    it('takes a message into the turn and shows it once, or the turn says that it does not', async () => {
      const turn = run(agent.steer ? 'steer' : 'slow');
      await until(() => turn.chunks.length > 0);
      await Promise.all([turn.steer('left', 'm1'), turn.steer('left', 'm1')]);
      const verdicts = () => turn.chunks.filter(({ type }) => /steering/.test(type));
      if (!agent.steer) {
        expect(verdicts()).toMatchObject([
          { type: 'data-steering', data: { id: 'm1', status: 'refused' } },
        ]);
        turn.abort();
        return ended(turn);
      }
      await turn.done;
      expect(verdicts()).toEqual([
        { type: 'steering-message', id: 'm1', parts: [{ type: 'text', text: 'left' }] },
      ]);
      expect(turn.text).toContain('Steered: left');
      const late = { ...promptOf('steer'), id: 'm2', text: 'late' };
      expect(await agent.steer(late)).toBe(false);
    });

    it('stops when the signal aborts in the middle of an answer', async () => {
      const turn = run('slow');
      await until(() => turn.text === 'Half ');
      turn.abort();
      await turn.done;
      expect(turn.text).toBe('Half ');
      expect(turn.outcome).toEqual({ status: 'stopped' });
      const next = run('text');
      await next.done;
      expect(next.text).toBe('Hello, world!');
    });

    it('says nothing when the signal had aborted before', async () => {
      const source = toSource<{ type: string }>(
        await agent.prompt(promptOf('text', { signal: AbortSignal.abort() })),
      );
      const types: string[] = [];
      try {
        for (let next = await source.next(); !next.done; next = await source.next()) {
          types.push(next.value.type);
        }
      } catch {
        // It may say in this way that it was stopped.
      }
      expect(types).not.toContain('text-delta');
    });

    it('stops when the signal aborts while it asks', async () => {
      const turn = run('ask');
      await until(() => turn.questions.length === 1);
      turn.abort();
      await turn.done;
      expect(turn.text).not.toContain('Answered');
    });

    it('holds nothing after it was closed, also when that is done twice', async () => {
      // What was set up by now may hold something of its own.
      await agent.close?.();
      await rig.close?.();
      const before = handles();
      const timers = trackTimers();
      try {
        await start();
        for (const text of ['text', 'tool']) await run(text).done;
        const turn = run('slow');
        await until(() => turn.text === 'Half ');
        turn.abort();
        await turn.done;
        await agent.close?.();
        await agent.close?.();
        await rig.close?.();
        await until(() => timers.count === 0);
        await until(() => handles().length <= before.length);
        await until(() => (rig.held?.() ?? 0) === 0);
      } finally {
        timers.restore();
      }
    });
  });
}

/** What keeps the process alive, beside timers. */
function handles(): string[] {
  return process
    .getActiveResourcesInfo()
    .filter((kind) => !['Timeout', 'Immediate', 'TickObject'].includes(kind));
}
