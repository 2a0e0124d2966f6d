import { createClient } from 'redis';
import { describe, expect, it } from 'vitest';
import { type RedisTurnLogOptions, redisTurnLog } from './index.ts';
import { readOptions } from './options.ts';

const client = createClient();
const create = (options: object) => () =>
  redisTurnLog({ client, ...options } as unknown as RedisTurnLogOptions);

describe('options that cannot be meant', () => {
  it.each([
    [{ leaseMs: 0 }, 'leaseMs must be at least 100 milliseconds, not 0.'],
    [{ leaseMs: '10 s' }, 'leaseMs must be at least 100 milliseconds, not 10 s.'],
    [{ retentionMs: -1 }, 'retentionMs must be milliseconds, not -1.'],
    [{ outageMs: Number.NaN }, 'outageMs must be milliseconds, not NaN.'],
    [{ maxTurnBytes: 'big' }, 'maxTurnBytes must be a number of bytes, not big.'],
    [{ maxTurnBytes: Number.NaN }, 'maxTurnBytes must be a number of bytes, not NaN.'],
    [{ retainedBytes: -1 }, 'retainedBytes must be a number of bytes, not -1.'],
    [{ prefix: '' }, 'prefix must be a text, not "".'],
    [{ prefix: 5 }, 'prefix must be a text, not 5.'],
    [{ prefix: null }, 'prefix must be a text, not null.'],
  ])('%o', (options, words) => {
    expect(create(options)).toThrow(TypeError);
    expect(create(options)).toThrow(words);
  });

  it('none at all', () => {
    const none = () => (redisTurnLog as () => unknown)();
    expect(none).toThrow(/needs a client: createClient\(\) of redis, or new Redis\(\) of ioredis/);
  });

  it('a prefix that does not reach the keys', () => {
    const prefixed = createClient({ keyPrefix: 'app:' });
    expect(create({ client: prefixed })).toThrow('Say { prefix } instead.');
  });
});

it('times are whole for Redis, and may be as long as for ever', () => {
  const { leaseMs, retentionMs } = readOptions({
    client,
    leaseMs: 10_000 / 3,
    retentionMs: Number.POSITIVE_INFINITY,
  });
  expect(leaseMs).toBe(3_334);
  expect(Number.isSafeInteger(retentionMs + Date.now())).toBe(true);
});
