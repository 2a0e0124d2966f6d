/** The short form of `npm run fuzz`, with another seed each time; a failure says which. */
import { describe, expect, it } from 'vitest';
import { runFuzz } from './run-fuzz.ts';

describe('malformed frames and raw bytes', () => {
  it('crash nothing, hang nothing, and bring out no invalid chunk [PRF-02]', async () => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    const { rows, failures } = await runFuzz({ seed, frames: 20_000, requests: 150 });
    const again = (at: { target: string; round: number }) =>
      `npm run fuzz -- --seed ${seed} --only '${at.target}' --round ${at.round}`;
    expect(failures.map((failure) => ({ ...failure, again: again(failure) }))).toEqual([]);
    expect(rows.length).toBeGreaterThan(30);
    const frames = rows.reduce((sum, row) => sum + row.frames, 0);
    expect(frames, `seed ${seed}`).toBeGreaterThanOrEqual(20_000 + 2 * 150);
    // It reaches what it is meant to reach.
    for (const { target, out } of rows.filter((row) => row.target !== 'runner')) {
      expect(out, `${target}, seed ${seed}`).toBeGreaterThan(0);
    }
  });
});

/** Rounds that once found something; what it was has a test beside the code as well. */
const FOUND = [
  { target: 'chunk translator', seed: 1, round: 204 },
  { target: 'chunk translator', seed: 1, round: 1_629 },
  { target: 'contract decoder', seed: 1, round: 122 },
  { target: 'contract decoder', seed: 1, round: 139 },
  { target: 'fold, compact, downgrade, encode', seed: 1, round: 1_385 },
  { target: 'fold, compact, downgrade, encode', seed: 1, round: 9_026 },
  { target: 'fold, compact, downgrade, encode', seed: 5, round: 3_457 },
  { target: 'messages of clients', seed: 5, round: 233 },
  { target: 'messages of clients', seed: 20_261_116, round: 3_956 },
  { target: 'messages of clients', seed: 20_261_116, round: 8_076 },
  { target: 'messages of clients', seed: 20_261_116, round: 9_125 },
  { target: 'sabir transport', seed: 20_261_116, round: 1_073 },
  { target: 'wires of odd turns', seed: 5, round: 2_216 },
  { target: 'agent in a session', seed: 777, round: 58 },
  { target: 'raw websockets', seed: 1, round: 0 },
];

describe('the fuzzer itself', () => {
  it('finds nothing any more where it once did', async () => {
    const options = { seed: 0, frames: 0, requests: 0, replays: FOUND };
    const { rows, failures } = await runFuzz(options);
    expect(failures).toEqual([]);
    expect(rows.map(({ target }) => target)).toEqual(FOUND.map(({ target }) => target));
  });

  it('finds what is broken', { timeout: 60_000 }, async () => {
    const targets = new URL('./broken-targets.ts', import.meta.url);
    const options = { seed: 1, frames: 48_000, requests: 0, targets, hangMs: 6_000 };
    const { rows, failures } = await runFuzz(options);
    expect(failures.map(({ target, kind, message }) => [target, kind, message])).toEqual([
      ['throws', 'crash', expect.stringContaining('It broke.')],
      ['says nonsense', 'invalid', expect.stringContaining('nonsense')],
      ['rejects behind our back', 'crash', expect.stringContaining('Nobody heard it.')],
      ['throws behind our back', 'crash', expect.stringContaining('Nobody caught it.')],
      ['pollutes', 'crash', expect.stringContaining('Every object has polluted now.')],
      ['hoards', 'crash', expect.stringContaining('It keeps')],
      ['hangs', 'hang', expect.stringContaining('It has not come back')],
    ]);
    expect(rows[0]).toMatchObject({ target: 'sound', frames: 6_000, failures: [] });
  });

  it('does the same again for the same seed', async () => {
    const options = { seed: 7, frames: 300, requests: 0, only: 'chunk translator' };
    const [first, second] = [await runFuzz(options), await runFuzz(options)];
    const told = ({ rows }: typeof first) => rows.map(({ seconds: _, ...row }) => row);
    expect(told(first)).toEqual(told(second));
    const { rows } = await runFuzz({ ...options, seed: 8 });
    expect(rows[0]?.out).not.toBe(first.rows[0]?.out);
  });
});
