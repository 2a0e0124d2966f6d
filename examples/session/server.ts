/**
 * A session with an agent of your own in it: many people, one agent, a history that survives a
 * restart, and an endpoint that every AI SDK client can use.
 *
 *     node session/server.ts
 */
import { setTimeout } from 'node:timers/promises';
import type { AgentDriver } from 'sabir/session';
import { sqliteSessionStore, startSessionStack } from 'sabir/session/node';

const ferryman: AgentDriver = {
  name: 'ferryman',
  async *prompt({ content, author, signal, ask }) {
    for (const word of `${author?.id ?? 'Somebody'} wants to go to ${content}. `.split(/(?<= )/)) {
      yield { type: 'text', delta: word };
      await setTimeout(30, undefined, { signal });
    }
    const answer = await ask({ text: 'Two coins. Agreed?', options: ['Yes', 'No'] });
    const isAgreed = answer.status === 'answered' && answer.answer === 'Yes';
    yield { type: 'text', delta: isAgreed ? 'Step aboard.' : 'Then swim.' };
  },
};

const stack = await startSessionStack({
  port: Number(process.env.PORT ?? 3006),
  store: sqliteSessionStore({ file: process.env.DATABASE ?? ':memory:' }),
  driver: () => ferryman,
});
console.log(`Listening on http://localhost:${stack.port}`);
process.once('SIGTERM', () => stack.close());
