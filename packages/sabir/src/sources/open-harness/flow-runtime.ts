import { createId } from '../../core/id.ts';
import { quietly } from '../../core/quietly.ts';
import type { Logger } from '../../core/translator.ts';
import type {
  AgentEvent,
  Command,
  FlowEvent,
  NodeEvent,
  Runtime,
  RuntimeEvent,
  RuntimeStatus,
} from './events.ts';

export type FlowNodeContext = {
  nodeId: string;
  /** One invocation of the node. */
  runId: string;
  /** The first node gets what `run()` was given; a later one the output of the node before it. */
  input: unknown;
  /** What a person wrote since the last node began: a message into the running or paused flow. */
  messages: string[];
  outputs: Readonly<Record<string, unknown>>;
  /** Aborted when the flow is paused or aborted. */
  signal: AbortSignal;
  emit(event: AgentEvent): void;
};

export type FlowNode = (context: FlowNodeContext) => unknown;

export type FlowEdge = {
  from: string;
  to: string;
  /** Without it the edge always fires. */
  when?: (context: { output: unknown; outputs: Readonly<Record<string, unknown>> }) => boolean;
};

export type FlowDefinition = {
  name: string;
  /** Nodes run one after another, in the order in which they become ready. */
  nodes: Record<string, FlowNode>;
  edges?: FlowEdge[];
  logger?: Logger;
};

type NodeStatus = 'pending' | 'running' | 'done' | 'failed' | 'skipped';

export type FlowSnapshot = {
  runId: string;
  status: RuntimeStatus;
  nodeStatus: Record<string, NodeStatus>;
  outputs: Record<string, unknown>;
};

/** A runtime as Open Harness has them up to 0.1: one object, one run, steered by `dispatch`. */
export interface FlowRuntime extends Runtime {
  run(input?: unknown): Promise<FlowSnapshot>;
  dispatch(command: Command): void;
  getSnapshot(): FlowSnapshot;
}

/**
 * A small flow runtime with the interface of Open Harness: nodes are functions, edges connect
 * them. It can be paused, resumed and aborted, and takes messages while it runs.
 *
 * @example
 * const runtime = createFlowRuntime({
 *   name: 'hello',
 *   nodes: {
 *     greeter: async ({ emit }) => {
 *       emit({ type: 'agent:text:delta', content: 'Hello!' });
 *       return 'Hello!';
 *     },
 *   },
 * });
 */
export function createFlowRuntime(flow: FlowDefinition): FlowRuntime {
  const edges = flow.edges ?? [];
  assertSound(flow.nodes, edges);
  return new RunningFlow(flow, edges);
}

/** Owns one run: its status, what each node gave, and the invocation that is under way. */
class RunningFlow implements FlowRuntime {
  #flow: FlowDefinition;
  #edges: FlowEdge[];
  #runId = createId();
  #status: RuntimeStatus = 'idle';
  #input: unknown;
  #nodeStatus: Record<string, NodeStatus> = {};
  #outputs: Record<string, unknown> = {};
  #fired = new Set<FlowEdge>();
  #messages: string[] = [];
  #listeners = new Set<(event: RuntimeEvent) => void>();
  #invocation: Invocation | undefined;
  #isResuming = false;
  #resumeMessage: string | undefined;
  #interrupt: () => void = () => undefined;

  constructor(flow: FlowDefinition, edges: FlowEdge[]) {
    this.#flow = flow;
    this.#edges = edges;
    for (const nodeId of Object.keys(flow.nodes)) this.#nodeStatus[nodeId] = 'pending';
  }

  onEvent(listener: (event: RuntimeEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  getSnapshot(): FlowSnapshot {
    return {
      runId: this.#runId,
      status: this.#status,
      nodeStatus: { ...this.#nodeStatus },
      outputs: { ...this.#outputs },
    };
  }

  async run(input?: unknown): Promise<FlowSnapshot> {
    if (this.#isResuming) {
      this.#isResuming = false;
      this.#emit({ type: 'flow:resumed' });
    } else if (this.#status === 'idle') {
      this.#status = 'running';
      this.#input = input;
      this.#emit({ type: 'flow:start', flowName: this.#flow.name });
    } else {
      throw new Error(
        this.#status === 'running'
          ? `Run ${this.#runId} is already running`
          : `Run ${this.#runId} is not resumable`,
      );
    }
    // A node may ignore its signal; pausing and aborting do not wait for it.
    const interrupted = new Promise<void>((resolve) => {
      this.#interrupt = resolve;
    });
    await Promise.race([this.#runNodes(), interrupted]);
    return this.getSnapshot();
  }

  dispatch(command: Command): void {
    this.#emit({ type: 'command:received', command });
    if (command.type === 'send' && this.#status === 'running') {
      this.#messages.push(command.message);
    } else if (command.type === 'abort' && this.#status === 'running') {
      this.#stop(command.resumable ? 'paused' : 'aborted');
    } else if (command.type === 'abort' && this.#status === 'paused' && !command.resumable) {
      this.#stop('aborted');
    } else if (command.type === 'resume' && this.#status === 'paused') {
      this.#status = 'running';
      this.#isResuming = true;
      this.#resumeMessage = command.message;
      this.#emit({ type: 'flow:resumed' });
    }
  }

  #stop(status: 'paused' | 'aborted'): void {
    this.#status = status;
    this.#emit({ type: `flow:${status}` });
    const invocation = this.#invocation;
    if (invocation?.hasAgent) {
      this.#emit({
        ...(status === 'paused'
          ? { type: 'agent:paused' }
          : { type: 'agent:aborted', reason: 'abort' }),
        nodeId: invocation.nodeId,
        runId: invocation.runId,
      });
    }
    // The interrupted node runs again when the flow is resumed.
    if (invocation) this.#nodeStatus[invocation.nodeId] = 'pending';
    this.#invocation = undefined;
    invocation?.controller.abort();
    this.#interrupt();
  }

  async #runNodes(): Promise<void> {
    for (let nodeId = this.#next(); nodeId !== undefined; nodeId = this.#next()) {
      const invocation = new Invocation(nodeId);
      this.#invocation = invocation;
      this.#nodeStatus[nodeId] = 'running';
      const messages = this.#takeMessages(invocation);
      this.#emitIn(invocation, { type: 'node:start' });
      // A listener may have stopped the flow at that very event.
      if (this.#invocation !== invocation) return;
      try {
        const output = await this.#flow.nodes[nodeId]?.({
          nodeId,
          runId: invocation.runId,
          input: this.#inputOf(nodeId),
          messages,
          outputs: { ...this.#outputs },
          signal: invocation.controller.signal,
          emit: (event) => this.#emitIn(invocation, event),
        });
        if (this.#invocation !== invocation) return;
        this.#complete(invocation, output);
      } catch (error) {
        if (this.#invocation !== invocation) return;
        this.#fail(invocation, error);
        return;
      }
    }
    if (this.#status === 'running') this.#end('complete');
  }

  #takeMessages(invocation: Invocation): string[] {
    const message = this.#resumeMessage;
    const messages = this.#messages;
    this.#messages = [];
    this.#resumeMessage = undefined;
    if (message === undefined) return messages;
    const command: Command = { type: 'send', runId: invocation.runId, message };
    this.#emit({ type: 'command:received', command });
    return [message, ...messages];
  }

  #complete(invocation: Invocation, output: unknown): void {
    const { nodeId } = invocation;
    const outputs = { ...this.#outputs, [nodeId]: output };
    // Asked before anything is said: a condition that throws fails the node it is asked of.
    const firing = this.#edges.filter(
      ({ from, when }) => from === nodeId && (when?.({ output, outputs }) ?? true),
    );
    this.#emitIn(invocation, { type: 'node:complete', output });
    if (this.#invocation !== invocation) return;
    this.#invocation = undefined;
    this.#nodeStatus[nodeId] = 'done';
    this.#outputs = outputs;
    for (const edge of firing) {
      this.#fired.add(edge);
      this.#emit({ type: 'edge:fire', from: edge.from, to: edge.to });
    }
  }

  #fail(invocation: Invocation, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (invocation.hasAgent) {
      this.#emitIn(invocation, { type: 'agent:error', errorType: 'exception', message });
    }
    this.#nodeStatus[invocation.nodeId] = 'failed';
    this.#emitIn(invocation, { type: 'node:error', error: message });
    this.#end('failed');
  }

  #end(status: 'complete' | 'failed'): void {
    this.#invocation = undefined;
    this.#status = 'complete';
    this.#emit({ type: 'flow:complete', flowName: this.#flow.name, status });
  }

  /** The next node whose predecessors are all settled; nodes no edge fired for are skipped. */
  #next(): string | undefined {
    if (this.#status !== 'running') return undefined;
    for (const [nodeId, status] of Object.entries(this.#nodeStatus)) {
      if (status !== 'pending') continue;
      const incoming = this.#edges.filter(({ to }) => to === nodeId);
      if (incoming.some(({ from }) => !isSettled(this.#nodeStatus[from]))) continue;
      if (incoming.length === 0 || incoming.some((edge) => this.#fired.has(edge))) return nodeId;
      this.#nodeStatus[nodeId] = 'skipped';
      this.#emit({ type: 'node:skipped', nodeId, reason: 'edge' });
      return this.#next();
    }
    return undefined;
  }

  #inputOf(nodeId: string): unknown {
    const sources = this.#edges
      .filter((edge) => edge.to === nodeId && this.#fired.has(edge))
      .map(({ from }) => from);
    if (sources.length === 0) return this.#input;
    const [first] = sources;
    if (sources.length === 1 && first !== undefined) return this.#outputs[first];
    return Object.fromEntries(sources.map((from) => [from, this.#outputs[from]]));
  }

  #emitIn(invocation: Invocation, event: AgentEvent | NodeEvent): void {
    // What a node says after it was stopped is nobody's any more.
    if (this.#invocation !== invocation) return;
    if (event.type === 'agent:start') invocation.hasAgent = true;
    if (event.type === 'agent:complete') invocation.hasAgent = false;
    this.#emit({ ...event, nodeId: invocation.nodeId, runId: invocation.runId });
  }

  #emit(event: (FlowEvent | AgentEvent | NodeEvent) & { nodeId?: string; runId?: string }): void {
    const stamped = { ...event, timestamp: Date.now() } as RuntimeEvent;
    for (const listener of this.#listeners) {
      try {
        listener(stamped);
      } catch (error) {
        // Its text may quote what was said.
        const { name } = (error ?? {}) as Error;
        quietly(() => this.#flow.logger?.error?.('a listener threw', { error: name }));
      }
    }
  }
}

class Invocation {
  readonly nodeId: string;
  readonly runId = createId();
  readonly controller = new AbortController();
  /** An agent began and has not said that it is done. */
  hasAgent = false;

  constructor(nodeId: string) {
    this.nodeId = nodeId;
  }
}

function isSettled(status: NodeStatus | undefined): boolean {
  return status === 'done' || status === 'skipped';
}

/** Says at once what would otherwise show as a flow that never ends. */
function assertSound(nodes: Record<string, FlowNode>, edges: FlowEdge[]): void {
  const names = Object.keys(nodes);
  if (names.length === 0) throw new TypeError('A flow needs at least one node.');
  for (const name of names) {
    if (typeof nodes[name] !== 'function') throw new TypeError(`Node "${name}" is not a function.`);
  }
  for (const { from, to } of edges) {
    for (const end of [from, to]) {
      if (!Object.hasOwn(nodes, end)) {
        throw new TypeError(
          `Edge ${from} → ${to}: there is no node "${end}". Nodes: ${names.join(', ')}.`,
        );
      }
    }
  }
  const settled = new Set<string>();
  for (let before = -1; before !== settled.size; ) {
    before = settled.size;
    for (const name of names) {
      if (edges.every(({ from, to }) => to !== name || settled.has(from))) settled.add(name);
    }
  }
  const stuck = names.filter((name) => !settled.has(name));
  if (stuck.length > 0) throw new TypeError(`The edges form a loop through ${stuck.join(', ')}.`);
}
