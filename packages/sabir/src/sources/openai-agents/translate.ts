import { createMessageAccumulator } from '../../core/accumulator.ts';
import type { Chunk, FinishReason } from '../../core/chunks.ts';
import type { Decision } from '../../core/decision.ts';
import { createId } from '../../core/id.ts';
import type { Loose } from '../../core/loose.ts';
import type { UIMessage } from '../../core/message.ts';
import type { MessageMetadata, TurnOutcome } from '../../core/outcome.ts';
import { countSkipped, type Translator, type TranslatorStats } from '../../core/translator.ts';
import { createApprovals } from './approvals.ts';
import { createCitations } from './citations.ts';
import {
  type ApprovalEvent,
  isLoose,
  nameOf,
  type OpenAIAgentsOptions,
  type RunItem,
  type RunItemEventName,
  type RunStreamEvent,
} from './events.ts';
import { readFailure } from './failures.ts';
import { fileOf } from './outputs.ts';
import { cutShortBy, readRawModel, type Signal } from './raw-model.ts';
import { callIdOf, isToolItem, readCall } from './read-call.ts';
import { createToolCalls } from './tool-calls.ts';
import { createUsage } from './usage.ts';

export interface OpenAIAgentsTranslator extends Translator<RunStreamEvent | ApprovalEvent> {
  /** What the interruptions of a run are asked for by: the ids of their questions. */
  approvalIdsOf(interruptions: readonly RunItem[]): string[];
  /** What somebody said to it; no answer in time is a no. Undefined while it is open. */
  decisionOn(approvalId: string): Decision | undefined;
  /** `error` is what the run threw; it decides how the turn ended, whatever the outcome says. */
  end(outcome?: TurnOutcome, error?: unknown): Chunk[];
}

/** Whether what an item carries is what its event is about, and what it does: nothing if silent. */
type ItemMapping = {
  [Name in RunItemEventName]: [
    isSound: (raw: Loose) => boolean,
    apply?: (raw: Loose, item: Loose) => void,
  ];
};
const anything = () => true;
const isCall = (raw: Loose) => readCall(raw) !== undefined;
const hasCallId = (raw: Loose) => callIdOf(raw) !== undefined;

/** Runs of the OpenAI Agents SDK → chunks, for one turn; a run that was interrupted may go on in it. */
export function createOpenAIAgentsTranslator(
  options: OpenAIAgentsOptions = {},
): OpenAIAgentsTranslator {
  const accumulator = createMessageAccumulator(
    options.messageId ?? options.message?.id ?? createId(),
  );
  const stats: TranslatorStats = { unknown: {}, malformed: {} };
  const approvals = createApprovals(accumulator, options);
  const citations = createCitations();
  const usage = createUsage();
  const calls = createToolCalls(accumulator, approvals, {
    ensureStep,
    isToolError: options.isToolError,
  });
  /** What has been streamed of the response, so that its items need not be told again. */
  let streamed = new Set<string>();
  /** Words that were streamed without saying of which item they are. */
  let unnamed = { text: '', refusal: '' };
  /** Its items may still come; whatever else comes is the next one's. */
  let isResponseOver = false;
  let block: string | undefined;
  let isInStep = false;
  let agent = options.agent;
  let shownAgent: string | undefined;
  /** Why the last response ended, where it was not of its own will. */
  let cutShort: FinishReason | undefined;
  let hasRefused = false;
  /** A response that the SDK throws at is never told as done, though it was paid for. */
  let isCounted = false;
  let uncounted: unknown;

  const items: ItemMapping = {
    message_output_created: [(raw) => Array.isArray(raw.content), message],
    reasoning_item_created: [(raw) => Array.isArray(raw.content), thought],
    tool_called: [isToolItem, calls.called],
    handoff_requested: [isCall, calls.called],
    tool_search_called: [isCall, calls.called],
    tool_output: [hasCallId, calls.answer],
    handoff_occurred: [hasCallId, calls.answer],
    tool_search_output_created: [hasCallId, calls.answer],
    // It is asked when the run has stopped for it, with all the others: then it can be stored first.
    tool_approval_requested: [isCall],
    compaction_item_created: [anything],
  };

  /** One response of the model is one step; it says who speaks when that has changed. */
  function beginStep(): void {
    calls.nextResponse();
    accumulator.startStep();
    isInStep = true;
    streamed = new Set();
    unnamed = { text: '', refusal: '' };
    isResponseOver = false;
    block = undefined;
    cutShort = undefined;
    hasRefused = false;
    isCounted = false;
    uncounted = undefined;
    showAgent();
  }

  function ensureStep(): void {
    if (!isInStep) beginStep();
  }

  function showAgent(): void {
    if (agent === undefined || agent === shownAgent) return;
    const from = shownAgent;
    shownAgent = agent;
    accumulator.data('agent', { name: agent, ...(from !== undefined && { from }) });
  }

  /** Items tell whose they are, though late: it matters where nothing else has told. */
  function learnAgent({ agent: owner }: Loose): void {
    const name = nameOf(owner);
    if (agent !== undefined || name === undefined) return;
    agent = name;
    if (isInStep) showAgent();
  }

  function write(kind: 'text' | 'reasoning', part: string, delta: string): void {
    if (delta === '' || (kind === 'reasoning' && options.sendReasoning === false)) return;
    ensureStep();
    const key = `${kind} ${part}`;
    if (block !== key) accumulator.closeBlock();
    block = key;
    accumulator.delta(kind, delta);
  }

  /** Some models do not say that a response begins. */
  function enterResponse(): void {
    if (isResponseOver) beginStep();
    else ensureStep();
  }

  /** Whether words of an item are those that were streamed; each are taken for one item only. */
  function takeUnnamed(kind: keyof typeof unnamed, text: string): boolean {
    if (unnamed[kind] === '') return false;
    // Where the item has other words it has been changed on its way: it is the same all the same.
    unnamed[kind] = unnamed[kind].startsWith(text) ? unnamed[kind].slice(text.length) : '';
    return true;
  }

  const raw: { [type: string]: (data: Loose) => boolean } = {
    response_started() {
      beginStep();
      return true;
    },
    output_text_delta({ delta, itemId, providerData }) {
      if (typeof delta !== 'string') return false;
      const id = itemId ?? (isLoose(providerData) ? providerData.item_id : undefined);
      enterResponse();
      if (typeof id === 'string') streamed.add(`text ${id}`);
      else unnamed.text += delta;
      write('text', `${id ?? ''}`, delta);
      return true;
    },
    response_done({ response }) {
      if (!isLoose(response)) return false;
      enterResponse();
      isResponseOver = true;
      accumulator.closeBlock();
      block = undefined;
      usage.add(response.usage);
      isCounted = true;
      if (isLoose(response.providerData)) cutShort = cutShortBy(response.providerData) ?? cutShort;
      return true;
    },
    model({ event }) {
      for (const signal of readRawModel(event)) heed(signal);
      return true;
    },
  };

  function heed(signal: Signal): void {
    if (signal.kind !== 'finish') enterResponse();
    switch (signal.kind) {
      case 'reasoning':
        streamed.add(`reasoning ${signal.block.split(' ')[0]}`);
        write('reasoning', signal.block, signal.delta);
        break;
      case 'refusal':
        unnamed.refusal += signal.delta;
        refuse(signal.delta);
        break;
      case 'citation':
        cite(signal.citation);
        break;
      case 'finish':
        if (signal.reason !== 'stop') cutShort = signal.reason ?? cutShort;
        uncounted = signal.usage;
        break;
      default:
        calls.heed(signal);
    }
  }

  function cite(citation: Loose): void {
    const source = citations.read(citation);
    if (source) accumulator.part(source);
  }

  function refuse(text: string): void {
    hasRefused = true;
    write('text', 'refusal', text);
  }

  function message({ id, content }: Loose): void {
    const isTold = streamed.has(`text ${id}`);
    for (const part of content as unknown[]) {
      if (!isLoose(part)) continue;
      const { refusal, providerData } = part;
      // What is spoken is written too.
      const text =
        part.text ?? part.transcript ?? (isLoose(providerData) && providerData.transcript);
      if (typeof text === 'string' && !isTold && !takeUnnamed('text', text)) {
        write('text', `${id ?? ''}`, text);
      }
      if (typeof refusal === 'string' && !takeUnnamed('refusal', refusal)) refuse(refusal);
      const file = fileOf(part);
      if (file) accumulator.part(file);
      const noted = isLoose(providerData) ? providerData.annotations : undefined;
      for (const citation of Array.isArray(noted) ? noted : [])
        if (isLoose(citation)) cite(citation);
    }
  }

  function thought({ id, content, rawContent }: Loose): void {
    if (streamed.has(`reasoning ${id}`) || streamed.has('reasoning chat')) return;
    const summary = (content as unknown[]).length > 0 ? content : rawContent;
    for (const [at, part] of (Array.isArray(summary) ? summary : []).entries()) {
      if (isLoose(part) && typeof part.text === 'string') {
        write('reasoning', `${id} whole ${at}`, part.text);
      }
    }
  }

  function interrupt(interruptions: readonly unknown[]): void {
    calls.ask(interruptions.filter(isInterruption));
    // Whoever goes on with the message later goes on counting.
    accumulator.part({ type: 'message-metadata', messageMetadata: usage.total() });
    // Clients that answer only after their stream has ended are let go at the end of this step.
    accumulator.finishStep();
    isInStep = false;
  }

  function apply(event: Loose): keyof TranslatorStats | undefined {
    switch (event.type) {
      case 'raw_model_stream_event': {
        const { data } = event;
        if (!isLoose(data) || typeof data.type !== 'string') return 'malformed';
        if (!Object.hasOwn(raw, data.type)) return 'unknown';
        accumulator.start();
        return raw[data.type]?.(data) ? undefined : 'malformed';
      }
      case 'run_item_stream_event': {
        const { name, item } = event;
        if (typeof name !== 'string' || !isLoose(item)) return 'malformed';
        if (!Object.hasOwn(items, name)) return 'unknown';
        const [isSound, run] = items[name as RunItemEventName];
        if (!isLoose(item.rawItem) || !isSound(item.rawItem)) return 'malformed';
        accumulator.start();
        learnAgent(item);
        run?.(item.rawItem, item);
        return undefined;
      }
      case 'agent_updated_stream_event': {
        const name = nameOf(event.agent);
        if (name === undefined) return 'malformed';
        agent = name;
        return undefined;
      }
      case 'run_interrupted':
        if (!Array.isArray(event.interruptions)) return 'malformed';
        interrupt(event.interruptions);
        return undefined;
      case 'approval_answered':
      case 'approval_expired': {
        const { approvalId, approved, reason } = event;
        if (typeof approvalId !== 'string') return 'malformed';
        const decision = {
          approved: approved === true,
          ...(typeof reason === 'string' && { reason }),
        };
        const isTaken = approvals.settle(
          approvalId,
          event.type === 'approval_expired' ? 'expired' : decision,
        );
        return isTaken ? undefined : 'malformed';
      }
    }
    return 'unknown';
  }

  function end(given: TurnOutcome | undefined, error: unknown): void {
    const { errorText } = options;
    let outcome = given;
    if (error !== undefined) {
      const failure = readFailure(error, { cutShort, errorText });
      outcome = failure.outcome;
      if (failure.refusal && !hasRefused) refuse(failure.refusal);
    }
    if (outcome?.status === 'finished') {
      calls.nextResponse();
      const finishReason =
        outcome.finishReason ?? cutShort ?? (hasRefused ? 'content-filter' : 'stop');
      outcome = { ...outcome, finishReason };
    }
    if (outcome?.status === 'paused') calls.pause();
    else approvals.withdraw();
    if (!isCounted) usage.add(uncounted);
    const metadata: MessageMetadata = usage.total();
    accumulator.end(outcome, metadata, outcome?.status === 'failed' ? outcome.message : undefined);
  }

  if (options.message) goOnWith(options.message);

  /** What a run must know of the message that it adds to. */
  function goOnWith({ parts, metadata }: UIMessage): void {
    if (isLoose(metadata)) usage.goOnWith(metadata.usage);
    const given = parts as readonly Loose[];
    for (const part of given) {
      calls.goOnWith(part);
      citations.goOnWith(part);
      if (part.type === 'data-question' && isLoose(part.data)) {
        const { toolCallId } = part.data;
        const call = given.find((one) => one.toolCallId === toolCallId);
        approvals.goOnWith(part.data, call?.approval);
      }
      if (part.type === 'data-agent' && isLoose(part.data)) shownAgent = nameOf(part.data);
    }
  }

  return {
    stats,
    get ended() {
      return accumulator.isEnded;
    },
    decisionOn: approvals.decisionOn,
    approvalIdsOf: (interruptions) => calls.approvalIdsOf(interruptions.filter(isInterruption)),
    push(event) {
      if (accumulator.isEnded) return [];
      let type = '(no type)';
      let problem: keyof TranslatorStats | undefined = 'malformed';
      try {
        if (isLoose(event) && typeof event.type === 'string') {
          type = labelOf(event);
          problem = apply(event);
        }
      } catch {
        // A proxy or a getter of somebody else's event threw: the rest of the turn is still good.
      }
      if (problem) countSkipped(stats, problem, type);
      return accumulator.take();
    },
    end(outcome, error) {
      if (accumulator.isEnded) return [];
      end(outcome, error);
      return accumulator.take();
    },
  };
}

function isInterruption(item: unknown): item is RunItem & Loose {
  return isLoose(item) && isLoose(item.rawItem) && isCall(item.rawItem);
}

/** What an event is counted under: which raw event or item it is matters more than that it is one. */
function labelOf({ type, data, name }: Loose): string {
  if (type === 'raw_model_stream_event' && isLoose(data)) return `${type} ${data.type}`;
  return type === 'run_item_stream_event' ? `${type} ${name}` : (type as string);
}
