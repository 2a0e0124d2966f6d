export {
  createFlowRuntime,
  type FlowDefinition,
  type FlowEdge,
  type FlowNode,
  type FlowNodeContext,
  type FlowRuntime,
  type FlowSnapshot,
} from './flow-runtime.ts';
