/**
 * The agent: a session server and its runners in a process of their own. Tells its parent how often
 * it was asked what, and how far it has come.
 */
import { createLocalRunners } from '../../src/platforms/node/local-runners.ts';
import { serve } from '../../src/platforms/node/serve.ts';
import { createSessionServer } from '../../src/platforms/node/sessions.ts';
import { type Agent, type AgentPrompt, memorySessionStore } from '../../src/sessions/index.ts';
import { reportFailures, tellParent } from './child.ts';
import { readPrompt, scriptOf, wordsOfAnswer } from './script.ts';

const RUNNER_TOKEN = 'the-runner-of-the-run';

reportFailures();

async function* perform({ text, signal, ask }: AgentPrompt) {
  const prompt = readPrompt(text);
  if (!prompt) throw new Error('Not a prompt of the run.');
  const { turn, scriptSeed } = prompt;
  const { steps } = scriptOf(scriptSeed);
  tellParent({ type: 'prompted', turn });
  try {
    for (const [index, step] of steps.entries()) {
      if (step.pauseMs > 0) await sleep(step.pauseMs, signal);
      if (signal.aborted) break;
      tellParent({ type: 'progress', turn, done: (index + 1) / steps.length });
      if (step.kind === 'chunk') {
        yield step.chunk;
        continue;
      }
      tellParent({ type: 'asked', turn, questionId: step.questionId });
      const reply = await ask({ questionId: step.questionId, text: step.text });
      const answer = reply.status === 'answered' ? reply.answer : reply.status;
      tellParent({ type: 'answered', turn, answer });
      yield { type: 'text-delta' as const, delta: wordsOfAnswer(answer) };
    }
  } finally {
    // Also where it was stopped while it waited for an answer.
    tellParent({ type: 'said', turn, isAborted: signal.aborted });
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}

const agent: Agent = { name: 'chaos', prompt: perform };
const sessions = createSessionServer({
  store: memorySessionStore(),
  authenticate: ({ headers }) => {
    const id = headers.get('authorization')?.replace('Bearer ', '');
    return id ? { id } : null;
  },
  access: () => 'owner',
  admitRunner: ({ headers }) => headers.get('authorization') === `Bearer ${RUNNER_TOKEN}`,
  onRunnerWanted: (sessionId) => runners.call(sessionId),
  onSessionClosed: (sessionId) => runners.dismiss(sessionId),
  timing: { lingerMs: 60_000, questionMs: 120_000 },
});
const server = await serve({
  fetch: () => new Response('', { status: 404 }),
  upgrade: sessions.upgrade,
});
const runners = createLocalRunners({
  url: server.url,
  token: RUNNER_TOKEN,
  agent: () => agent,
  retryMs: { least: 10, most: 100 },
});
tellParent({ type: 'ready', port: server.port });
