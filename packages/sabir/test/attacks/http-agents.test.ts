/** Attacks through the application's own code: an agent, or a hook, that gives what nobody expects. */
import { describe, expect, it } from 'vitest';
import { asUpstream } from '../../src/gateway/index.ts';
import { chatBody, echo, openSse, readChunks, refusal } from '../gateway-client.ts';
import { startAttacked } from './attacked.ts';

const SECRET = 'my secret is 1234';

/** Errors that throw when they are read. */
const unreadable = (): [string, unknown][] => [
  ['has no message', Object.assign(new Error(SECRET), { message: undefined })],
  ['has an empty message', Object.assign(new Error(SECRET), { message: '' })],
  ['has a symbol for a message', Object.assign(new Error(SECRET), { message: Symbol('x') })],
  ['throws when its message is read', withGetter('message')],
  ['throws when its stack is read', withGetter('stack')],
];

function withGetter(name: string): Error {
  return Object.defineProperty(new Error(SECRET), name, {
    get() {
      throw new Error('Do not read me.');
    },
  });
}

describe('an error of the application', () => {
  it.each(unreadable())('that %s is a 500 from access, and is logged', async (_, error) => {
    const attacked = await startAttacked(echo, {
      access() {
        throw error;
      },
    });
    const response = await attacked.user('carl').post(chatBody('a'));
    expect(await refusal(response)).toMatchObject({ status: 500, code: 'internal-error' });
    expect(attacked.lines).toContainEqual(expect.objectContaining({ message: 'request failed' }));
  });

  it.each(unreadable())(
    'that %s does not break a turn from onFinish or the agent',
    async (_, error) => {
      const agent = asUpstream(async function* ({ text }) {
        yield { type: 'text-delta', id: '1', delta: 'hi' };
        if (text === 'throw') throw error;
      });
      const attacked = await startAttacked(agent, {
        onFinish() {
          throw error;
        },
      });
      const carl = attacked.user('carl');
      const failed = openSse(await carl.post(chatBody('throw')));
      await failed.ended;
      expect(failed.frames.at(-1)?.data).toBe('[DONE]');
      expect((await readChunks(await carl.post(chatBody('again')))).at(-1)).toMatchObject({
        type: 'finish',
      });
      await expect.poll(() => attacked.use('liveTurns')).toBe(0);
      expect(attacked.lines.filter(({ message }) => message === 'onFinish failed')).toHaveLength(2);
      expect(JSON.stringify(attacked.lines)).not.toContain(SECRET);
    },
  );
});
