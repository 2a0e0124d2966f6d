import { createAccumulatorCore } from '../../core/accumulator-core.ts';
import type { Chunk } from '../../core/chunks.ts';
import { RUN_ABORTED, RUN_FAILED, toErrorText, toShownText } from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import type { MessageMetadata, TurnOutcome, Usage } from '../../core/outcome.ts';
import { countSkipped, type Translator, type TranslatorStats } from '../../core/translator.ts';
import type { EventOf, OpenHarnessDataTypes, RuntimeEvent, RuntimeEventType } from './events.ts';
import type { OpenHarnessOptions } from './options.ts';

type Block = 'text' | 'reasoning';
type NodeData = OpenHarnessDataTypes['node'];
type FlowStatus = OpenHarnessDataTypes['flow-status']['status'];
type OpenCall = { id: string; toolName: string; input: string | undefined };

/** What is known of one node invocation. */
type Run = {
  id: string;
  nodeId: string;
  /** Which kinds had deltas since their last full block: that block repeats them. */
  text?: boolean;
  reasoning?: boolean;
  calls: OpenCall[];
  hasFailed?: boolean;
  isOver?: boolean;
};

type InNode = { nodeId: string; runId: string };
type WithContent = InNode & { content: string };

/** What a translator saw of a run that goes on in the next message. */
type Seen = { runs: Iterable<Run>; isInFlow: boolean; flowName: string; lastError: unknown };

export interface OpenHarnessTranslator extends Translator<RuntimeEvent> {
  /** `error` is what a failed outcome's text is made of, where there is more than its message. */
  end(outcome?: TurnOutcome, error?: unknown): Chunk[];
  /** The same run goes on in another message: what was seen of it stays known. */
  continueAs(messageId: string): OpenHarnessTranslator;
}

/** Whether an event has what it needs to mean anything, and what it does: nothing if silent. */
type Mapping = {
  [Type in RuntimeEventType]: [
    isSound: (event: Loose) => boolean,
    apply?: (event: EventOf<Type>) => void,
  ];
};
type Loose = { [Field in 'nodeId' | 'runId' | 'content' | 'toolName']?: unknown };
const anything = () => true;
const isInNode = (event: Loose) =>
  typeof event.nodeId === 'string' && typeof event.runId === 'string';
const hasContent = (event: Loose) => isInNode(event) && typeof event.content === 'string';

const FINISHED: TurnOutcome = { status: 'finished' };
const FAILED: TurnOutcome = { status: 'failed', code: RUN_FAILED.code };
const ABORTED: TurnOutcome = { status: 'failed', code: RUN_ABORTED.code };

/** Tools of a flow run beside it, never in the client. */
const RUNS_WITH_THE_AGENT = { providerExecuted: true };
/** Open Harness events → chunks, for one turn. */
export function createOpenHarnessTranslator(
  options: OpenHarnessOptions & { messageId?: string } = {},
): Translator<RuntimeEvent> {
  return createTranslator(options);
}

/**
 * Owns what the runtime leaves unsaid: call ids, which full block repeats its deltas, whether a
 * flow is around the agent, what went wrong so far. Part ids and order are the accumulator's.
 */
export function createTranslator(
  options: OpenHarnessOptions & { messageId?: string },
  seen?: Seen,
): OpenHarnessTranslator {
  const { accumulator } = createAccumulatorCore(
    options.messageId ?? (options.generateMessageId ?? createId)(),
  );
  const stats: TranslatorStats = { unknown: {}, malformed: {} };
  const runs = new Map<string, Run>();
  for (const run of seen?.runs ?? []) runs.set(run.id, { ...run, calls: [] });
  let lastRun: Run | undefined;
  /** Whose block is open: a delta of another run begins a new one. */
  let blockRun: Run | undefined;
  let stepRun: Run | undefined;
  let isInFlow = seen?.isInFlow ?? false;
  let flowName = seen?.flowName ?? options.flowName ?? '';
  let flowStatus: FlowStatus | undefined;
  let lastError = seen?.lastError;
  /** An error was the last thing that happened: if nothing follows, the run died of it. */
  let isAtError = false;
  let usage: Usage | undefined;
  let totalCostUsd: number | undefined;

  const mapping: Mapping = {
    'flow:start': [anything, startFlow],
    'flow:resumed': [anything, () => showFlow('running')],
    'flow:paused': [anything, () => endFlow('paused', { status: 'paused' })],
    'flow:aborted': [anything, () => endFlow('aborted', ABORTED)],
    'flow:complete': [anything, completeFlow],
    'node:start': [isInNode, startNode],
    'node:complete': [isInNode, completeNode],
    'node:error': [isInNode, failNode],
    'node:skipped': [
      ({ nodeId }) => typeof nodeId === 'string',
      ({ nodeId }) => showNode({ nodeId, status: 'skipped' }),
    ],
    'agent:start': [isInNode, startAgent],
    'agent:text:delta': [hasContent, (event) => delta('text', event)],
    'agent:text': [hasContent, (event) => wholeBlock('text', event)],
    'agent:thinking:delta': [hasContent, (event) => delta('reasoning', event)],
    'agent:thinking': [hasContent, (event) => wholeBlock('reasoning', event)],
    'agent:tool': [(event) => isInNode(event) && typeof event.toolName === 'string', tool],
    'agent:error': [isInNode, failAgent],
    'agent:complete': [isInNode, completeAgent],
    'agent:paused': [isInNode, () => endBare({ status: 'paused' })],
    'agent:aborted': [isInNode, () => endBare(ABORTED)],
    'edge:fire': [anything],
    'loop:iterate': [anything],
    'state:patch': [anything],
    'command:received': [anything],
  };

  function apply(type: string, event: Loose): keyof TranslatorStats | undefined {
    if (!Object.hasOwn(mapping, type)) return 'unknown';
    // The table pairs each type with its own event; TypeScript cannot follow the pairing.
    const known = mapping[type as 'flow:start'];
    if (!known[0](event)) return 'malformed';
    isInFlow ||= /^(flow|node):/.test(type);
    isAtError = false;
    accumulator.start();
    known[1]?.(event as EventOf<'flow:start'>);
    return undefined;
  }

  function runOf({ runId, nodeId }: InNode): Run {
    if (lastRun?.id === runId) return lastRun;
    let run = runs.get(runId);
    if (!run) {
      run = {
        id: runId,
        nodeId,
        calls: [],
      };
      runs.set(runId, run);
    }
    lastRun = run;
    return run;
  }

  function startFlow(event: EventOf<'flow:start'>): void {
    if (typeof event.flowName === 'string') flowName = event.flowName;
    showFlow('running');
  }

  function completeFlow({ status }: EventOf<'flow:complete'>): void {
    if (status === 'failed') endFlow(status, FAILED);
    else endFlow('complete', FINISHED);
  }

  function startNode(event: EventOf<'node:start'>): void {
    // Finished runs were kept so far: a full block that comes late must not be said twice.
    for (const run of runs.values()) if (run.isOver) runs.delete(run.id);
    lastRun = undefined;
    const run = runOf(event);
    if (options.sendStepMarkers !== false) {
      accumulator.startStep();
      stepRun = run;
    }
    showRun(run, 'running');
  }

  function completeNode(event: EventOf<'node:complete'>): void {
    const run = runOf(event);
    finishNode(run);
    showRun(run, 'complete');
    if (!options.sendNodeOutputs) return;
    const { nodeId, id: runId } = run;
    accumulator.data('node-output', { nodeId, runId, output: event.output ?? null });
  }

  function failNode(event: EventOf<'node:error'>): void {
    const run = runOf(event);
    lastError = event.error ?? lastError;
    isAtError = true;
    const text = toShownText(lastError, options.errorText);
    finishNode(run, text);
    showRun(run, 'error', text);
  }

  function startAgent(event: EventOf<'agent:start'>): void {
    const run = runOf(event);
    // Another try under the same run id: what the failed one left open ends here.
    closeRun(run);
    run.text = false;
    run.reasoning = false;
    if (run.hasFailed) showRun(run, 'running');
    run.hasFailed = false;
  }

  function failAgent(event: EventOf<'agent:error'>): void {
    const run = runOf(event);
    run.hasFailed = true;
    lastError = event.message ?? lastError;
    isAtError = true;
    showRun(run, 'error', toShownText(lastError, options.errorText));
    endBare(FAILED);
  }

  function completeAgent(event: EventOf<'agent:complete'>): void {
    if (blockRun === runOf(event)) accumulator.closeBlock();
    const said = event.usage;
    if (said && typeof said === 'object') {
      usage ??= {};
      add(usage, 'inputTokens', said.inputTokens);
      add(usage, 'outputTokens', said.outputTokens);
      if (said.cacheReadInputTokens) add(usage, 'cachedInputTokens', said.cacheReadInputTokens);
    }
    const cost = event.totalCostUsd;
    if (Number.isFinite(cost)) totalCostUsd = (totalCostUsd ?? 0) + (cost as number);
    endBare(FINISHED);
  }

  function delta(kind: Block, event: WithContent): void {
    if (event.content === '' || isHidden(kind)) return;
    const run = runOf(event);
    run[kind] = true;
    write(kind, run, event.content);
  }

  /** The whole block: the end of what its deltas said, or the block itself where none came. */
  function wholeBlock(kind: Block, event: WithContent): void {
    if (isHidden(kind)) return;
    const run = runOf(event);
    if (!run[kind] && event.content) write(kind, run, event.content);
    run[kind] = false;
    if (blockRun === run && accumulator.openBlock === kind) accumulator.closeBlock();
  }

  function write(kind: Block, run: Run, content: string): void {
    if (blockRun !== run) accumulator.closeBlock();
    blockRun = run;
    accumulator.delta(kind, content);
  }

  function isHidden(kind: Block): boolean {
    return kind === 'reasoning' && options.sendReasoning === false;
  }

  function tool(event: EventOf<'agent:tool'>): void {
    const { calls } = runOf(event);
    const { toolName, toolInput, error } = event;
    const ask = () => accumulator.toolInput(undefined, toolName, toolInput, RUNS_WITH_THE_AGENT);
    const hasError = error !== undefined && error !== null;
    if (!hasError && !('toolOutput' in event) && event.durationMs === undefined) {
      calls.push({ id: ask(), toolName, input: toJsonText(toolInput) });
      return;
    }
    const id = takeAskedCall(calls, toolName, toolInput)?.id ?? ask();
    if (hasError) accumulator.toolError(id, toToolErrorText(error));
    else accumulator.toolOutput(id, event.toolOutput);
  }

  /** Text and reasoning of the run, then its unanswered tools. */
  function closeRun(run: Run, toolErrorText?: string): void {
    if (blockRun === run) accumulator.closeBlock();
    for (const { id } of run.calls) accumulator.toolError(id, toolErrorText);
    run.calls = [];
  }

  function finishNode(run: Run, toolErrorText?: string): void {
    closeRun(run, toolErrorText);
    run.isOver = true;
    if (stepRun === run) accumulator.finishStep();
  }

  function showRun({ nodeId, id }: Run, status: NodeData['status'], error?: string): void {
    showNode({ nodeId, runId: id, status, ...(error === undefined ? undefined : { error }) });
  }

  function showNode(data: NodeData): void {
    if (options.sendFlowMetadata) accumulator.data('node', data, { id: data.runId ?? data.nodeId });
  }

  function showFlow(status: FlowStatus): void {
    if (!options.sendFlowMetadata || flowStatus === status) return;
    flowStatus = status;
    accumulator.data('flow-status', { status, flowName }, { id: 'flow' });
  }

  /** Without a flow around it, the agent's own end is the turn's. */
  function endBare(outcome: TurnOutcome): void {
    if (options.bare ?? !isInFlow) end(outcome);
  }

  function endFlow(status: FlowStatus, outcome: TurnOutcome): void {
    accumulator.closeParts();
    showFlow(status);
    end(outcome);
  }

  function end(given?: TurnOutcome, error?: unknown): void {
    const outcome = isAtError && given?.status === 'finished' ? FAILED : given;
    const metadata: MessageMetadata = {};
    if (usage) metadata.usage = usage;
    if (totalCostUsd !== undefined) metadata.totalCostUsd = totalCostUsd;
    if (flowName) metadata.flowName = flowName;
    let text: string | undefined;
    if (outcome?.status === 'failed') {
      // An abort is its own reason; a failure is what was last seen to go wrong.
      const remembered = outcome.code === RUN_ABORTED.code ? undefined : lastError;
      const cause = error ?? outcome.message ?? remembered;
      if (cause !== undefined) text = toShownText(cause, options.errorText);
      else if (outcome.code === RUN_ABORTED.code) text = RUN_ABORTED.userMessage;
    }
    accumulator.end(outcome, metadata, text);
  }

  return {
    stats,
    get ended() {
      return accumulator.isEnded;
    },
    push(event) {
      if (accumulator.isEnded) return [];
      const { repairs } = accumulator;
      let type = '(no type)';
      let problem: keyof TranslatorStats | undefined = 'malformed';
      try {
        const given = (event as { type?: unknown } | null | undefined)?.type;
        if (typeof given === 'string') {
          type = given;
          problem = apply(type, event as Loose);
          if (accumulator.repairs !== repairs) problem = 'malformed';
        }
      } catch {
        // A proxy or a getter of somebody else's event threw: the rest of the turn is still good.
      }
      const news = problem && countSkipped(stats, problem, type);
      if (news) warn(options, `${problem} event`, { type: news });
      return accumulator.take();
    },
    end(outcome, error) {
      end(outcome, error);
      return accumulator.take();
    },
    continueAs: (messageId) =>
      createTranslator(
        { ...options, messageId },
        { runs: runs.values(), isInFlow, flowName, lastError },
      ),
  };
}

export function warn(
  options: OpenHarnessOptions,
  message: string,
  details: Record<string, unknown>,
): void {
  try {
    options.logger?.warn(message, details);
  } catch {
    // A logger that throws must not break the runtime that calls us.
  }
}

/**
 * A variant of the runtime says a call twice, first with its input, then with its answer. Neither
 * has an id: the oldest open call of that name with the same input is the one that is answered.
 */
function takeAskedCall(calls: OpenCall[], toolName: string, input: unknown): OpenCall | undefined {
  if (calls.length === 0) return undefined;
  const text = toJsonText(input);
  let index = calls.findIndex(
    (call) => call.toolName === toolName && (input === undefined || call.input === text),
  );
  // The runtime names a tool "unknown" when it lost track of the call: with one open it is that.
  if (index < 0 && toolName === 'unknown' && calls.length === 1) index = 0;
  return index < 0 ? undefined : calls.splice(index, 1)[0];
}

/** Undefined for what JSON cannot say: nothing, or a cycle. */
function toJsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** A tool's error is the agent's data: it is passed on as it is. */
function toToolErrorText(error: unknown): string {
  if (typeof error === 'string') return error;
  const { message } = error as { message?: unknown };
  return typeof message === 'string' ? message : (toJsonText(error) ?? toErrorText(error));
}

function add(sum: Usage, key: keyof Usage, value: unknown): void {
  if (Number.isFinite(value)) sum[key] = (sum[key] ?? 0) + (value as number);
}
