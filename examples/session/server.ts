/**
 * A session with an agent of your own in it: many people, one agent, a history that survives a
 * restart, and an endpoint that every AI SDK client can use.
 *
 *     node session/server.ts
 */
import { setTimeout } from 'node:timers/promises';
import type { Agent } from 'sabir/session';
import { sqliteSessionStore, startSessionStack } from 'sabir/session/node';

const ferryman: Agent = {
  name: 'ferryman',
  async *prompt({ text, user, signal, ask }) {
    for (const word of `${user.id} wants to go to ${text}. `.split(/(?<= )/)) {
      yield { type: 'text-delta', delta: word };
      await setTimeout(30, undefined, { signal });
    }
    const answer = await ask({ text: 'Two coins. Agreed?', options: ['Yes', 'No'] });
    const isAgreed = answer.status === 'answered' && answer.answer === 'Yes';
    yield { type: 'text-delta', delta: isAgreed ? 'Step aboard.' : 'Then swim.' };
  },
};

const stack = await startSessionStack({
  port: Number(process.env.PORT ?? 3006),
  store: sqliteSessionStore({ file: process.env.DATABASE ?? ':memory:' }),
  agent: () => ferryman,
});
console.log(`Listening on http://localhost:${stack.port}`);
process.once('SIGTERM', () => stack.close());
