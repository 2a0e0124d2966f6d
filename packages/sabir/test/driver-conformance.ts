/**
 * What every driver is held to: each MUST above the `AgentDriver` interface has its test here.
 *
 * An author's own runs it by giving a `setup`, whose agent does what the prompt's first word says:
 * - `text …` says "Hello, world!" and ends;
 * - `tool` calls a tool named `lookup`, which finds "42", says what it found, and ends;
 * - `toolerror` calls `lookup`, which fails, and ends;
 * - `ask` asks a question with the options Yes and No, says "Answered: " and the answer, and ends;
 * - `fail` fails, and says "It broke.";
 * - `slow` says "Half " and never goes on.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AgentDriver } from '../src/turns/driver.ts';
import { type DriverRun, findToolFaults, runPrompt, until } from './driver-run.ts';
import { trackTimers } from './upstream-turn.ts';

export type DriverRig = {
  driver: AgentDriver;
  /** How many runs, connections or whatever else the agent holds, where it can tell. */
  held?(): number;
  close?(): Promise<void>;
};

export function describeDriver(name: string, setup: () => Promise<DriverRig>): void {
  describe(`driver ${name}`, () => {
    let rig: DriverRig;
    const ending = new AbortController();

    const start = async () => {
      rig = await setup();
      await rig.driver.start?.({ sessionId: 's', signal: ending.signal, emit: () => undefined });
    };
    const run = (content: string) => runPrompt(rig.driver, content);
    /** Whatever it does then, it has ended. */
    const stopped = (turn: DriverRun) =>
      turn.done.then(
        () => true,
        (error: Error) => error.message !== 'The driver never ended.',
      );

    beforeEach(start);
    afterEach(async () => {
      await rig.driver.close?.();
      await rig.close?.();
    });

    it('has a name', () => {
      expect(rig.driver.name).not.toBe('');
    });

    it('gives the answer, and ends by returning', async () => {
      const turn = run('text please');
      await turn.done;
      expect(turn.text).toBe('Hello, world!');
      expect(turn.tools).toEqual([]);
    });

    it('answers each prompt by itself', async () => {
      for (const content of ['text 1', 'tool', 'text 2']) {
        const turn = run(content);
        await turn.done;
        expect(turn.text).toContain(content === 'tool' ? '42' : 'Hello, world!');
      }
    });

    it('tells of a tool from its beginning to its end', async () => {
      const turn = run('tool');
      await turn.done;
      expect(findToolFaults(turn.events)).toEqual([]);
      expect(turn.tools.length).toBeGreaterThan(1);
      for (const { toolName } of turn.tools) expect(toolName).toBe('lookup');
      const last = turn.tools.at(-1);
      expect(last?.status).toBe('completed');
      expect(JSON.stringify(last?.result)).toContain('42');
      const isCalled = turn.tools.some(({ status, args }) => status === 'running' && args != null);
      expect(isCalled).toBe(true);
      const said = turn.events.findLastIndex(({ type }) => type === 'text');
      expect(said).toBeGreaterThan(turn.events.findLastIndex(({ type }) => type === 'tool'));
    });

    it('tells of a tool that failed, which is no failure of the turn', async () => {
      const turn = run('toolerror');
      await turn.done;
      expect(findToolFaults(turn.events)).toEqual([]);
      expect(turn.tools.at(-1)).toMatchObject({ toolName: 'lookup', status: 'error' });
    });

    it('throws with words when the agent fails, and answers the next prompt', async () => {
      const turn = run('fail');
      const error = await turn.done.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(Error);
      expect((error as Error).message).toContain('It broke.');
      const next = run('text');
      await next.done;
      expect(next.text).toBe('Hello, world!');
    });

    it('asks, and goes on with the answer', async () => {
      const turn = run('ask');
      await until(() => turn.questions.length === 1);
      const [question] = turn.questions;
      expect(question?.text).not.toBe('');
      expect(question?.options).toEqual(['Yes', 'No']);
      turn.answer('Yes');
      await turn.done;
      expect(turn.text).toBe('Answered: Yes');
      expect(findToolFaults(turn.events)).toEqual([]);
    });

    it('ends also when nobody answers in time', async () => {
      const turn = run('ask');
      await until(() => turn.questions.length === 1);
      turn.answer({ status: 'expired' });
      expect(await stopped(turn)).toBe(true);
    });

    it('stops when the signal aborts in the middle of an answer', async () => {
      const turn = run('slow');
      await until(() => turn.text === 'Half ');
      turn.abort();
      expect(await stopped(turn)).toBe(true);
      expect(turn.text).toBe('Half ');
      expect(findToolFaults(turn.events, false)).toEqual([]);
      const next = run('text');
      await next.done;
      expect(next.text).toBe('Hello, world!');
    });

    it('says nothing when the signal had aborted before', async () => {
      const stopping = new AbortController();
      stopping.abort();
      const turn = runPrompt(rig.driver, 'text', {}, stopping);
      expect(await stopped(turn)).toBe(true);
      expect(turn.text).toBe('');
    });

    it('stops when the signal aborts while it asks', async () => {
      const turn = run('ask');
      await until(() => turn.questions.length === 1);
      turn.abort();
      expect(await stopped(turn)).toBe(true);
      expect(turn.text).not.toContain('Answered');
    });

    it('holds nothing after it was closed, also when that is done twice', async () => {
      // What was set up by now may hold something of its own.
      await rig.driver.close?.();
      await rig.close?.();
      const before = handles();
      const timers = trackTimers();
      try {
        await start();
        for (const content of ['text', 'tool']) await run(content).done;
        const turn = run('slow');
        await until(() => turn.text === 'Half ');
        turn.abort();
        expect(await stopped(turn)).toBe(true);
        await rig.driver.close?.();
        await rig.driver.close?.();
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
