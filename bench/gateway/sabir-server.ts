/** The gateway, in a process of its own. */
import { agentOpsUpstream } from 'sabir/agent-ops';
import { createChatGateway, memoryTurnLog } from 'sabir/gateway';
import { serve } from 'sabir/node';
import { WebSocket } from 'ws';

const gateway = createChatGateway({
  upstream: agentOpsUpstream({ url: `ws://127.0.0.1:${process.argv[2]}`, WebSocket }),
  authenticate: () => ({ id: 'user' }),
  access: () => 'owner',
  timing: { lingerMs: 0 },
  // A client that falls behind would get fewer, larger chunks: here each one is counted.
  // And all clients are one user.
  limits: {
    viewerBacklogBytes: Infinity,
    liveTurnsPerUser: Infinity,
    viewersPerUser: Infinity,
    bodiesPerUser: Infinity,
  },
  log: memoryTurnLog({ maxTurnBytes: Infinity, retentionMs: 0 }),
});
const { url } = await serve({ fetch: gateway.fetch, port: 0 });
process.send?.({ port: Number(new URL(url).port) });
process.on('disconnect', () => process.exit());
