import { createLinkRig } from '../../../test/link-rig.ts';
import { describeUpstream } from '../../../test/upstream-conformance.ts';

const traits = { hasConnection: true, hasHistory: true, canAttach: true, isReplica: true };

for (const host of ['agent', 'runner'] as const) {
  describeUpstream(`sessionServerUpstream, ${host} behind the session`, traits, () =>
    createLinkRig({ host, upstream: { giveUpMs: 1_000 } }),
  );
}
