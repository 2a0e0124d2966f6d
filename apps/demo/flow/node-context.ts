import type { createFlowRuntime } from 'sabir/open-harness/runtime';

type Nodes = Parameters<typeof createFlowRuntime>[0]['nodes'];

/** What the runtime hands to a node. */
export type NodeContext = Parameters<Nodes[string]>[0];
