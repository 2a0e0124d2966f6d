/** Targets with every fault that the fuzzer has to find: it is tested with them. */
import { setImmediate } from 'node:timers/promises';
import { InvalidOutput, type Target } from './target.ts';

const PLAYED = { malformed: 10, sound: 0, refused: 0, out: 1 };

function broken(name: string, atRound: number, fault: () => unknown): Target {
  let round = 0;
  return {
    name,
    async play() {
      if (round++ === atRound) await fault();
      await setImmediate();
      return PLAYED;
    },
  };
}

export const TARGETS: Target[] = [
  broken('sound', -1, () => undefined),
  broken('throws', 1, () => {
    throw new TypeError('It broke.');
  }),
  broken('says nonsense', 1, () => {
    throw new InvalidOutput('nonsense');
  }),
  broken('rejects behind our back', 1, () => {
    void Promise.reject(new Error('Nobody heard it.'));
  }),
  broken('throws behind our back', 1, () => {
    process.nextTick(() => {
      throw new Error('Nobody caught it.');
    });
  }),
  broken('pollutes', 1, () => {
    Object.defineProperty(Object.prototype, 'polluted', { value: 1, configurable: true });
  }),
  broken('hoards', 1, () => {
    hoard.push(...Array.from({ length: 30 }, () => new Array(1_000_000).fill(0.5)));
  }),
  broken('hangs', 1, () => {
    for (;;);
  }),
];

const hoard: unknown[] = [];
