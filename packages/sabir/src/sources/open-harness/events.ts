/**
 * What an Open Harness runtime is and says, declared structurally: its SDK is not a dependency,
 * and any object of this shape is a runtime.
 */
import type { UIMessage, UITools } from '../../core/message.ts';
import type { MessageMetadata } from '../../core/outcome.ts';

export type RuntimeStatus = 'idle' | 'running' | 'paused' | 'aborted' | 'complete';

export type RunSnapshot = { status: RuntimeStatus };

export type Command =
  | { type: 'send'; message: string; runId: string }
  | { type: 'reply'; promptId: string; content: string; runId: string }
  | { type: 'abort'; resumable?: boolean; reason?: string }
  | { type: 'resume'; message?: string }
  | { type: 'pause' }
  | { type: 'stop' };

/**
 * One runtime is one run. Releases up to 0.1 steer by `dispatch`; from 0.2 on there are
 * `pause`, `resume` and `stop`, and `resume` itself runs the flow on. Both shapes fit.
 */
export interface Runtime {
  run(input?: unknown): Promise<RunSnapshot>;
  onEvent(listener: (event: RuntimeEvent) => void): () => void;
  getSnapshot(): RunSnapshot;
  dispatch?(command: Command): void;
  pause?(): unknown;
  resume?(message?: string): Promise<RunSnapshot>;
  stop?(): unknown;
}

type Stamped = { timestamp?: number };
type InNode = Stamped & { nodeId: string; runId: string };

type AgentUsage = {
  inputTokens?: number;
  outputTokens?: number;
  cacheReadInputTokens?: number;
  [key: string]: unknown;
};

/** Events an agent inside a node emits; the runtime adds who and when. */
export type AgentEvent =
  | { type: 'agent:start'; sessionId?: string; model?: string; prompt?: unknown }
  | { type: 'agent:text'; content: string }
  | { type: 'agent:text:delta'; content: string }
  | { type: 'agent:thinking'; content: string; tokenCount?: number }
  | { type: 'agent:thinking:delta'; content: string }
  | {
      type: 'agent:tool';
      toolName: string;
      toolInput?: unknown;
      toolOutput?: unknown;
      durationMs?: number;
      error?: unknown;
    }
  | { type: 'agent:error'; errorType?: string; message: string; details?: unknown }
  | { type: 'agent:paused'; sessionId?: string; numTurns?: number }
  | { type: 'agent:aborted'; reason?: string }
  | {
      type: 'agent:complete';
      result?: unknown;
      structuredOutput?: unknown;
      usage?: AgentUsage;
      totalCostUsd?: number;
      durationMs?: number;
      numTurns?: number;
    };

export type NodeEvent =
  | { type: 'node:start' }
  | { type: 'node:complete'; output?: unknown }
  | { type: 'node:error'; error?: unknown };

export type FlowEvent =
  | { type: 'flow:start'; flowName: string }
  | { type: 'flow:complete'; flowName?: string; status: 'complete' | 'failed' }
  | { type: 'flow:paused' }
  | { type: 'flow:resumed' }
  | { type: 'flow:aborted' }
  | { type: 'node:skipped'; nodeId: string; reason?: 'edge' | 'when' }
  | { type: 'edge:fire'; edgeId?: string; from: string; to: string }
  | { type: 'loop:iterate'; edgeId?: string; iteration: number }
  | { type: 'state:patch'; patch: unknown }
  | { type: 'command:received'; command: unknown };

export type RuntimeEvent = ((AgentEvent | NodeEvent) & InNode) | (FlowEvent & Stamped);

export type RuntimeEventType = RuntimeEvent['type'];
export type EventOf<Type extends RuntimeEventType> = Extract<RuntimeEvent, { type: Type }>;

export type OpenHarnessDataTypes = {
  'flow-status': {
    status: RuntimeStatus | 'failed';
    flowName: string;
  };
  'node-output': { nodeId: string; runId: string; output: unknown };
  node: {
    nodeId: string;
    runId?: string;
    status: 'running' | 'complete' | 'skipped' | 'error';
    error?: string;
  };
};

/** A message from a flow; name your tools to have their parts typed. */
export type OpenHarnessUIMessage<Tools extends UITools = UITools> = UIMessage<
  MessageMetadata,
  OpenHarnessDataTypes,
  Tools
>;
