/** A session whose storage or log fails when the test says so. */
import { vi } from 'vitest';
import { systemClock } from '../src/sessions/index.ts';
import type { TurnLog, TurnWriter } from '../src/turns/log.ts';
import { memoryTurnLog } from '../src/turns/memory.ts';
import { createSessionRig, settled, type TestClock } from './session-rig.ts';

/** For fake timers: the time of all timers, which stands still but for the test. */
const clock: TestClock = { ...systemClock, pass: (ms) => void vi.advanceTimersByTime(ms) };
/** Shorter than a lease: no turn is lost because time passed in one step. */
export const STEP_MS = 10_000;

export async function pass(ms: number): Promise<void> {
  await settled();
  for (let left = ms; left > 0; left -= STEP_MS) {
    clock.pass(Math.min(left, STEP_MS));
    await settled();
  }
}

/** Fails the nth call from now on, or all calls of a name. */
function createFaults() {
  const state = { calls: 0, failAt: 0, failed: '', broken: '' };

  function check(name: string): void {
    state.calls++;
    if (state.calls !== state.failAt && state.broken !== name) return;
    state.failed = name;
    throw new Error('The disk is full.');
  }

  return { state, check };
}

type Faults = ReturnType<typeof createFaults>;

const nameOfQuery = (_: string, sql: unknown) =>
  String(sql).startsWith('UPDATE turn SET ended') ? 'end' : 'database';

function failingAt<Kept extends object>(
  kept: Kept,
  { check }: Faults,
  toName: (name: string, first: unknown) => string = (name) => name,
): Kept {
  return new Proxy(kept, {
    get(target, name: string) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]) => {
        check(toName(name, given[0]));
        return member.apply(target, given);
      };
    },
  });
}

function failingLog(log: TurnLog, { check }: Faults): TurnLog {
  const toWriter = (writer: TurnWriter): TurnWriter => ({
    ...writer,
    get isHeld() {
      return writer.isHeld;
    },
    async append(chunks, mark) {
      check('append');
      return writer.append(chunks, mark);
    },
    async close(outcome, store) {
      check('close');
      return writer.close(outcome, store);
    },
  });
  return {
    ...log,
    async begin(info) {
      check('begin');
      const begun = await log.begin(info);
      return 'writer' in begun ? { writer: toWriter(begun.writer) } : begun;
    },
    async get(turnId) {
      check('get');
      return log.get(turnId);
    },
    async *read(...given) {
      check('read');
      yield* log.read(...given);
    },
    async command(turnId, command) {
      check('command');
      return log.command(turnId, command);
    },
    onOrphan: (adopt) =>
      log.onOrphan((orphan) => adopt({ ...orphan, writer: toWriter(orphan.writer) })),
  };
}

export const FAILING = [
  'storage',
  'storage beside a log in memory',
  'log',
  'log in memory',
] as const;
export type Failing = (typeof FAILING)[number];

export function createWorld(failing: Failing = 'storage') {
  const faults = createFaults();
  const reported: string[] = [];
  const report = (message: string) => void reported.push(message);
  // For the checks, which read the log when all is over.
  const turns = { retentionMs: 1e12, retainedBytes: Infinity };
  const memory = failing.endsWith('memory') ? memoryTurnLog(turns) : undefined;
  const isLog = failing.startsWith('log');
  const rig = createSessionRig({
    clock,
    turns,
    logger: { warn: report, error: report },
    ...(isLog
      ? { database: (database) => failingAt(database, faults, nameOfQuery) }
      : { storage: (storage) => failingAt(storage, faults) }),
    log: (log) => (isLog ? failingLog(memory ?? log, faults) : (memory ?? log)),
  });
  return {
    rig,
    reported,
    state: faults.state,
    get log() {
      return memory ?? rig.log;
    },
  };
}

export type World = ReturnType<typeof createWorld>;

export const ask = (n: number) => ({
  type: 'prompt',
  content: `Hi ${n}`,
  promptId: `p${n}`,
  turnId: `t${n}`,
});
