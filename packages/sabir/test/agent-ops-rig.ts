/** An `agentOpsUpstream` and the server behind it. */
import { afterEach } from 'vitest';
import { WebSocket as WsWebSocket } from 'ws';
import type { WebSocketConstructor } from '../src/sources/agent-ops/socket.ts';
import {
  type AgentOpsUpstreamOptions,
  agentOpsUpstream,
} from '../src/sources/agent-ops/upstream.ts';
import type { UpstreamSession } from '../src/turns/upstream.ts';
import { type Script, say, sayWhen, steps } from './agent-ops-script.ts';
import {
  type AgentOpsServer,
  type AgentOpsServerOptions,
  startAgentOpsServer,
} from './agent-ops-server.ts';
import type { UpstreamRig } from './upstream-conformance.ts';
import { ann, never } from './upstream-turn.ts';

export const SOCKETS: Record<'ws' | 'global WebSocket', WebSocketConstructor> = {
  ws: WsWebSocket,
  'global WebSocket': globalThis.WebSocket,
};

const question: Script = async function* ({ answer }) {
  yield { ask: { questionId: 'q1', text: 'Deploy?', options: ['Yes', 'No'] } };
  yield { say: `Answered: ${await answer('q1')}` };
};

export async function createAgentOpsRig(
  WebSocket: WebSocketConstructor,
  options: AgentOpsServerOptions,
): Promise<UpstreamRig> {
  const gate = Promise.withResolvers<void>();
  const server = await startAgentOpsServer({
    ...options,
    userOf: (token) => token?.replace('token-of-', ''),
    script(text) {
      const [word] = text.split(' ', 1);
      if (word === 'text') return say('Hello', ', ', 'world!');
      if (word === 'slow') return sayWhen(gate.promise, 'Half ', 'and whole.');
      if (word === 'question') return question;
      if (word === 'fail') return steps({ fail: 'It broke.' });
      if (word === 'drop') return steps({ say: 'Half ' }, { cut: 'between-frames' });
      return say(text);
    },
  });
  const silent = await startAgentOpsServer();
  silent.fault({ hang: true });
  const token = (user: { id: string }) => `token-of-${user.id}`;
  return {
    upstream: agentOpsUpstream({ url: server.url, WebSocket, token }),
    unreachable: agentOpsUpstream({ url: 'ws://127.0.0.1:1', WebSocket }),
    hanging: agentOpsUpstream({ url: silent.url, WebSocket }),
    isSerial: true,
    go: () => gate.resolve(),
    held: () => server.live.length,
    prompts: () =>
      server.connections.flatMap(({ received, headers }) =>
        received
          .filter(({ type }) => type === 'prompt')
          .map(({ content }) => ({
            text: String(content),
            user: headers.authorization?.replace('Bearer token-of-', ''),
          })),
      ),
    close: async () => {
      await Promise.all([server.close(), silent.close()]);
    },
  };
}

/** Servers and sessions that are closed after each test. */
export function agentOpsPerTest() {
  const open: { close(): unknown }[] = [];
  afterEach(async () => {
    for (const opened of open.splice(0).reverse()) await opened.close();
  });
  return {
    async start(options: AgentOpsServerOptions = {}): Promise<AgentOpsServer> {
      const server = await startAgentOpsServer(options);
      open.push(server);
      return server;
    },
    async openAt(
      { url }: { url: string },
      options: Partial<AgentOpsUpstreamOptions> = {},
      sessionId = 's',
    ): Promise<UpstreamSession> {
      const upstream = agentOpsUpstream({ url, WebSocket: SOCKETS.ws, settleMs: 300, ...options });
      const session = await upstream.open({ sessionId, user: ann, role: 'owner', signal: never() });
      open.push(session);
      return session;
    },
  };
}
