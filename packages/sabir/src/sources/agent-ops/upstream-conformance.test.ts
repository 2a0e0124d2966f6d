import { createAgentOpsRig, SOCKETS } from '../../../test/agent-ops-rig.ts';
import { describeUpstream } from '../../../test/upstream-conformance.ts';

const KINDS = [
  { socket: 'ws', dialect: 'snapshot', release: 'rfc' },
  { socket: 'ws', dialect: 'v2', release: 'head' },
  { socket: 'global WebSocket', dialect: 'snapshot', release: 'head' },
  { socket: 'global WebSocket', dialect: 'v2', release: 'rfc' },
] as const;

for (const { socket, ...kind } of KINDS) {
  // The newer release does not tell its messages.
  const traits = { hasConnection: true, hasHistory: kind.release === 'rfc' };
  describeUpstream(`agentOpsUpstream: ${socket}, ${kind.dialect}, ${kind.release}`, traits, () =>
    createAgentOpsRig(SOCKETS[socket], kind),
  );
}
