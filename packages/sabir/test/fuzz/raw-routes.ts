/**
 * Raw bytes into every route of a real server: a gateway, a session server and its runners on one
 * port. Whatever comes is answered with a refusal or a closed connection, and good turns go on.
 */
import { connect } from 'node:net';
import { createSseDecoder } from '../../src/core/sse.ts';
import { sessionAccess } from '../../src/gateway/index.ts';
import { startSessionStack } from '../../src/platforms/node/sessions.ts';
import { memorySessionStore } from '../../src/sessions/index.ts';
import { scriptedAgent } from '../scripted-agent.ts';
import { clientMessages, runnerEvents } from './corpus.ts';
import { mutateSequence, toJson } from './mutate-json.ts';
import type { Random } from './random.ts';
import { requestBytes, socketBytes } from './raw-requests.ts';
import { InvalidOutput, type Target, withinTime } from './target.ts';

/** How long an answer may take to begin, and to end, before we hang up: a stream may never end. */
const PATIENCE_MS = 250;
/** How many are under way at once. */
const AT_ONCE = 24;

type Stack = Awaited<ReturnType<typeof startStack>>;

async function startStack() {
  const problems: string[] = [];
  const stack = await startSessionStack({
    store: memorySessionStore(),
    agent: () => scriptedAgent(),
    shutdownMs: 200,
    authenticate: ({ headers }) =>
      headers.get('authorization') === 'Bearer ann' ? { id: 'ann' } : null,
    access: sessionAccess((sessionId) => (/^s\d$/.test(sessionId) ? { ownerId: 'ann' } : null)),
    admitRunner: ({ headers }) => headers.get('authorization') === 'Bearer runner-token',
    gateway: { routes: { onboarding: { public: true } }, timing: { disconnectGraceMs: 50 } },
    sessions: { timing: { lingerMs: 100, abortMs: 200, runnerGraceMs: 200 } },
    logger: {
      warn: () => undefined,
      error: (message, details) => void problems.push(`${message} ${JSON.stringify(details)}`),
    },
  });
  return { ...stack, problems };
}

/** Says the bytes, in pieces, and gives what was answered until somebody hung up. */
function exchange(port: number, bytes: Buffer, random: Random): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect(port, '127.0.0.1');
  let heard = '';
  const timer = setTimeout(() => socket.destroy(), PATIENCE_MS);
  socket.on('data', (data) => {
    if (heard.length < 20_000) heard += data.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    clearTimeout(timer);
    resolve(heard);
  });
  const cut = random.chance(0.3) ? random.below(bytes.length + 1) : bytes.length;
  socket.write(bytes.subarray(0, cut));
  if (cut < bytes.length) setImmediate(() => socket.destroyed || socket.write(bytes.subarray(cut)));
  // Not a word more will come: half of what was promised has to be enough to be refused.
  if (random.chance(0.5)) setTimeout(() => socket.destroyed || socket.end(), 20);
  return promise;
}

/** The statuses of all that was answered on one connection; a body may look like another answer. */
function statusesOf(heard: string): number[] {
  return [...heard.matchAll(/^HTTP\/1\.[01] (\d{3}) /gm)].map(([, status]) => Number(status));
}

/** A turn as good as any, from the first word to the last. */
async function checkGoodTurn({ url }: { url: string }, chatId: string): Promise<void> {
  const messages = [{ id: chatId, role: 'user', parts: [{ type: 'text', text: 'text' }] }];
  const response = await fetch(`${url}/api/sessions/s9/chat`, {
    method: 'POST',
    headers: { authorization: 'Bearer ann', 'content-type': 'application/json' },
    body: JSON.stringify({ id: chatId, messages, trigger: 'submit-message' }),
  });
  let said = '';
  const decoder = createSseDecoder({
    frame({ data }) {
      if (data !== '[DONE]') said += (JSON.parse(data) as { delta?: string }).delta ?? '';
    },
  });
  for await (const bytes of response.body ?? []) decoder.push(bytes);
  if (response.status !== 200 || said !== 'Hello, world!') {
    throw new InvalidOutput(`a good turn was answered with ${response.status}: ${said}`);
  }
}

function saidOnSocket(random: Random): unknown[] {
  const { sequences, words } = random.chance(0.7) ? clientMessages() : runnerEvents();
  const given = random.pick(sequences).slice(0, 12);
  const { frames } = mutateSequence(given, random.pick(sequences), { random, words });
  return frames.map(toJson);
}

function rawTarget(name: string, bytesFor: (random: Random) => Buffer): Target {
  let stack: Stack | undefined;
  let turns = 0;
  return {
    name,
    weight: 0,
    async play(random) {
      stack ??= await startStack();
      const { port, problems } = stack;
      const requests = Array.from({ length: AT_ONCE }, () => bytesFor(random));
      const answers = await withinTime(
        Promise.all(requests.map((bytes) => exchange(port, bytes, random))),
        name,
      );
      let refused = 0;
      for (const [at, heard] of answers.entries()) {
        const statuses = statusesOf(heard);
        const bad = statuses.find((status) => status >= 500);
        if (bad !== undefined || heard.includes('internal-error')) {
          const asked = requests[at]?.subarray(0, 300).toString('latin1');
          throw new InvalidOutput(`${bad} to ${JSON.stringify(asked)}: ${heard.slice(0, 300)}`);
        }
        if (statuses.length === 0 || statuses.some((status) => status >= 400)) refused++;
      }
      await withinTime(checkGoodTurn(stack, `good-${turns++}`), 'a good turn');
      if (problems.length > 0) throw new InvalidOutput(problems.splice(0).join('\n'));
      return { malformed: AT_ONCE, sound: 1, refused, out: AT_ONCE - refused };
    },
    async close() {
      const closed = stack?.close() ?? Promise.resolve();
      stack = undefined;
      await withinTime(closed, 'closing the server');
    },
  };
}

export const RAW_ROUTES: Target[] = [
  rawTarget('raw http', requestBytes),
  rawTarget('raw websockets', (random) => socketBytes(random, saidOnSocket(random))),
];
