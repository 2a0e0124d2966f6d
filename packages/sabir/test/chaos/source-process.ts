/**
 * The agents: session servers in a process of their own. Half of the sessions have their agent in the server's process, the
 * others a runner whose connection is cut now and then. Tells its parent how often the agent was asked what and how far it
 * has come, and answers for the log of each turn.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { memoryTurnLog } from '../../src/gateway/index.ts';
import { serve } from '../../src/platforms/node/serve.ts';
import { createSessionServer, type SessionServer } from '../../src/platforms/node/sessions.ts';
import { type Agent, type AgentPrompt, memorySessionStore } from '../../src/sessions/index.ts';
import { admitGateway } from '../link-rig.ts';
import { createLocalRunners } from '../local-runners.ts';
import { startSocketProxy } from '../socket-proxy.ts';
import { answerForLog, reportFailures, tellParent } from './child.ts';
import { readPrompt, scriptOf, wordsOfAnswer } from './script.ts';

const RUNNER_TOKEN = 'the-runner-of-the-run';
/** A runner's connection is cut after so many bytes. */
const LEAST_RUNNER_BYTES = 1_000;
const MOST_RUNNER_BYTES = 20_000;

reportFailures();

async function* perform({ text, signal, ask }: AgentPrompt) {
  const prompt = readPrompt(text);
  if (!prompt) throw new Error('Not a prompt of the run.');
  const { turn, scriptSeed } = prompt;
  const { steps } = scriptOf(scriptSeed);
  tellParent({ type: 'prompted', turn });
  let isComplete = false;
  try {
    for (const [index, step] of steps.entries()) {
      if (step.pauseMs > 0) await sleep(step.pauseMs, signal);
      if (signal.aborted) return;
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
    isComplete = true;
  } finally {
    // Also where it was stopped while it waited for an answer.
    tellParent({ type: 'said', turn, isAborted: !isComplete });
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
const shared = {
  // Longer than a turn may take to be judged.
  log: memoryTurnLog({ retentionMs: 300_000, retainedBytes: Infinity }),
  authenticate: () => null,
  access: () => null,
  admitGateway,
  timing: { lingerMs: 60_000, questionMs: 120_000 },
};
const withAgent = createSessionServer({
  ...shared,
  store: memorySessionStore(),
  agent: () => agent,
});
const withRunners: SessionServer = createSessionServer({
  ...shared,
  store: memorySessionStore(),
  admitRunner: ({ headers }) => headers.get('authorization') === `Bearer ${RUNNER_TOKEN}`,
  onRunnerWanted: (sessionId) => runners.call(sessionId),
  onSessionClosed: (sessionId) => runners.dismiss(sessionId),
});

function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const [, session = '0'] = /\/session-(\d+)\//.exec(request.url ?? '') ?? [];
  const server = Number(session) % 2 === 0 ? withAgent : withRunners;
  server.upgrade(request, socket, head);
}

const server = await serve({ fetch: () => new Response('', { status: 404 }), upgrade });
const runnerProxy = await startSocketProxy(server.port, () =>
  Math.round(LEAST_RUNNER_BYTES + Math.random() * (MOST_RUNNER_BYTES - LEAST_RUNNER_BYTES)),
);
const runners = createLocalRunners({
  url: runnerProxy.url,
  token: RUNNER_TOKEN,
  agent: () => agent,
  retryMs: { least: 10, most: 100 },
});
answerForLog(shared.log);
tellParent({ type: 'ready', port: server.port });
