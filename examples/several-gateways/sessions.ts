/**
 * The agents that the gateways are in front of: sessions with a ferryman in each.
 *
 *     SESSIONS_SECRET=… node several-gateways/sessions.ts
 */
import { timingSafeEqual } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { Agent } from 'sabir/session';
import { sqliteSessionStore, startSessionStack } from 'sabir/session/node';

const { SESSIONS_SECRET = '', DATABASE = ':memory:' } = process.env;
const { HOST = 'localhost', PORT = '3007', STROKE_MS = '500' } = process.env;
if (SESSIONS_SECRET === '') throw new Error('Set SESSIONS_SECRET, the same for the gateways.');

const ferryman: Agent = {
  name: 'ferryman',
  async *prompt({ text, signal }) {
    for (let stroke = 1; stroke <= 60; stroke++) {
      yield { type: 'text-delta', delta: `${stroke}. stroke towards ${text}. ` };
      await setTimeout(Number(STROKE_MS), undefined, { signal });
    }
  },
};

/** The user of `Bearer SECRET.USER`, which a gateway sends. */
function userOf({ headers }: Request) {
  const [, secret = '', id] =
    /^Bearer ([^.]*)\.(.+)$/.exec(headers.get('authorization') ?? '') ?? [];
  const [given, known] = [Buffer.from(secret), Buffer.from(SESSIONS_SECRET)];
  return given.length === known.length && timingSafeEqual(given, known) && id ? { id } : null;
}

const stack = await startSessionStack({
  port: Number(PORT),
  host: HOST,
  store: sqliteSessionStore({ file: DATABASE }),
  agent: () => ferryman,
  // All people come through the gateways.
  authenticate: () => null,
  admitGateway(request) {
    const user = userOf(request);
    return user && { user, role: 'collaborator' };
  },
});
console.log(`Listening on http://localhost:${stack.port}`);
process.once('SIGTERM', () => stack.close());
