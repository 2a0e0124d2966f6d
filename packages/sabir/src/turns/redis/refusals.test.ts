import { describe, expect, it } from 'vitest';
import { isPassing, refusalOf, toLogError } from './refusals.ts';

describe('what Redis refuses', () => {
  it.each([
    ['READONLY You can not write against a read only replica.', 'READONLY', true],
    ['OOM command not allowed when used memory > maxmemory.', 'OOM', true],
    ['WRONGTYPE Operation against a key of the wrong kind', 'WRONGTYPE', false],
    ['NOPERM this user has no permissions', 'NOPERM', false],
    // As Redis 6 says what happened in a script.
    [
      'ERR Error running script (call to f_2b): @user_script:9: -READONLY You can not',
      'READONLY',
      true,
    ],
    [
      'ERR Error running script (call to f_2b): @user_script:9: -WRONGTYPE Oper',
      'WRONGTYPE',
      false,
    ],
    ['ERR value is not an integer', 'ERR', false],
    // Not Redis, but the client.
    ['Socket closed unexpectedly', undefined, true],
    ['', undefined, true],
  ])('%s', (message, refusal, passes) => {
    const error = new Error(message);
    expect(refusalOf(error)).toBe(refusal);
    expect(isPassing(error)).toBe(passes);
  });

  it('is told without what was to be stored', () => {
    const { message, code, cause } = toLogError(
      new Error('OOM not allowed: EVALSHA secret words'),
      'no trouble',
    );
    expect(code).toBe('log-unavailable');
    expect(message).not.toMatch(/secret|OOM/);
    expect(cause).toMatchObject({ why: 'Redis says OOM' });
    expect(JSON.stringify(cause)).not.toContain('secret');
  });
});
