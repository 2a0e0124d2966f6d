import { WebSocket } from 'ws';
import { startAgentOpsServer } from '../../../test/agent-ops-server.ts';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import { type SessionChain, startSessionChain } from '../../../test/session-chain.ts';
import { describeUpstream } from '../../../test/upstream-conformance.ts';
import { agentOpsUpstream } from './upstream.ts';

for (const [name, socket, isSessionServer] of [
  ['ws', WebSocket, true],
  ['global WebSocket', globalThis.WebSocket, false],
] as const) {
  describeUpstream(
    `agentOpsUpstream: ${name}, a session server of ours`,
    { hasConnection: true, hasHistory: true, canAttach: true, keepsTime: true },
    async () => {
      const agent = scriptedAgent({ onDrop: () => void chain.close() });
      const chain: SessionChain = await startSessionChain({ agent, isKept: true });
      const silent = await startAgentOpsServer();
      silent.fault({ hang: true });
      const token = (user: { id: string }) => user.id;
      const common = { WebSocket: socket as never, token, returnMs: 300 };
      return {
        upstream: agentOpsUpstream({ url: chain.url, isSessionServer, ...common }),
        unreachable: agentOpsUpstream({ url: 'ws://127.0.0.1:1', ...common }),
        hanging: agentOpsUpstream({ url: silent.url, ...common }),
        isSerial: true,
        go: agent.go,
        end: chain.close,
        held: () => chain.sessions.clientCount,
        prompts: () => agent.prompts.map(({ text, user }) => ({ text, user: user.id })),
        close: async () => {
          await Promise.all([chain.close(), silent.close()]);
        },
      };
    },
  );
}
