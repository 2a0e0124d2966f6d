import type { MessageAccumulator } from '../../accumulator.ts';
import type { createApprovals } from './approvals.ts';
import { isLoose, type Loose, nameOf, type OpenAIAgentsOptions, textOf, WAITS } from './events.ts';
import { readOutput, toUrl } from './outputs.ts';
import type { Signal } from './raw-model.ts';
import { type Call, callIdOf, kindOf, readCall, readHostedOutput } from './read-call.ts';

/** Tools of a run work beside the agent, never in the client. */
const RUNS_WITH_THE_AGENT = { providerExecuted: true };

const approvalOf = (toolCallId: string) => `approve-${toolCallId}`;

type Context = Pick<OpenAIAgentsOptions, 'isToolError'> & { ensureStep(): void };

/**
 * The tool calls of a turn, which are told up to three times: as the response streams, as items of
 * the run, and as interruptions. Owns which is which, and what each has been answered.
 */
export function createToolCalls(
  accumulator: MessageAccumulator,
  approvals: ReturnType<typeof createApprovals>,
  { ensureStep, isToolError }: Context,
) {
  /** What clients know calls by, by what the model calls them; it may use an id a second time. */
  const ids = new Map<string, string>();
  const toolNames = new Map<string, string>();
  const answered = new Set<string>();
  /** Calls of the response that streams, by what its events name them. */
  const streaming = new Map<string, string>();
  /** Calls inside a tool that is an agent itself, heard of because they ask: nothing follows. */
  const nested = new Set<string>();
  /** Calls that have been asked for, and that OpenAI makes with its next response. */
  const hosted = new Set<string>();
  /** Calls of the message that is gone on with which were given up so that it could end. */
  const givenUp = new Map<string, { toolName: string; input: unknown }>();

  /** The id of the call: its own, unless another call of the turn has had it. */
  function open({ callId, toolName }: Call): string {
    const known = ids.get(callId);
    if (known !== undefined && !answered.has(known)) return known;
    let id = callId;
    for (let n = 2; answered.has(id); n++) id = `${callId}-${n}`;
    ids.set(callId, id);
    toolNames.set(id, toolName);
    return id;
  }

  function begin(key: string, item: Loose): void {
    const call = readCall(item);
    const kind = kindOf(item);
    if (!call || streaming.has(key) || kind === 'mcp_approval_request') return;
    ensureStep();
    const id = open(call);
    streaming.set(key, id);
    accumulator.toolInputStart(id, call.toolName, RUNS_WITH_THE_AGENT);
    // What streams no arguments is shown with none yet; code is streamed as one of them.
    if (kind === 'code_interpreter_call') accumulator.toolInputDelta(id, '{"code":"');
    else if (kind !== 'function_call' && kind !== 'mcp_call') accumulator.toolInputDelta(id, '{');
  }

  /** A call has its input, and one of OpenAI's own tools its output too. */
  function complete(item: Loose): void {
    const call = readCall(item);
    if (!call || kindOf(item) === 'mcp_approval_request') return;
    ensureStep();
    const id = open(call);
    accumulator.toolInput(id, call.toolName, call.input ?? {}, RUNS_WITH_THE_AGENT);
    const found = readHostedOutput(item);
    if (found === undefined) return;
    settle(id, found.output, found.errorText);
    if (!found.image) return;
    const mediaType = `image/${textOf(found.image.format) ?? 'png'}`;
    accumulator.part({ type: 'file', mediaType, url: toUrl(found.image.data, mediaType) });
  }

  /** `asked` is what the call was known by when somebody was asked about it. */
  function settle(id: string, output: unknown, errorText?: string, asked: string = id): void {
    if (!approvals.refuse(asked, id)) {
      if (errorText === undefined) accumulator.toolOutput(id, output);
      else accumulator.toolError(id, errorText);
    }
    answered.add(id);
  }

  /** A call that was given up has its answer now: it is told again, under another id. */
  function again(callId: string): string | undefined {
    const call = givenUp.get(callId);
    if (!call) return undefined;
    givenUp.delete(callId);
    ensureStep();
    const id = open({ callId, toolName: call.toolName });
    accumulator.toolInput(id, call.toolName, call.input ?? {}, RUNS_WITH_THE_AGENT);
    return id;
  }

  return {
    /** What tells of a call while the response streams. */
    heed(signal: Extract<Signal, { key: string } | { kind: 'item' }>): void {
      if (signal.kind === 'item') {
        complete(signal.item);
        return;
      }
      if (signal.kind === 'call') begin(signal.key, signal.item);
      const id = streaming.get(signal.key);
      if (id === undefined) return;
      if (signal.kind === 'arguments') accumulator.toolInputDelta(id, signal.delta);
      if (signal.kind === 'code') {
        accumulator.toolInputDelta(id, JSON.stringify(signal.delta).slice(1, -1));
      }
      if (signal.kind === 'preview') {
        const image = toUrl(signal.image, `image/${textOf(signal.format) ?? 'png'}`);
        accumulator.toolInput(id, toolNames.get(id) ?? '', {}, RUNS_WITH_THE_AGENT);
        accumulator.toolProgress(id, { image });
      }
    },
    /** As an item of the run; what OpenAI ran had its answer while the response streamed. */
    called(item: Loose): void {
      const isOver = answered.has(ids.get(readCall(item)?.callId ?? '') ?? '');
      if (!isOver || item.type !== 'hosted_tool_call') complete(item);
    },
    answer(rawItem: Loose, item: Loose): void {
      const callId = callIdOf(rawItem) as string;
      const asked = ids.get(callId) ?? callId;
      const id = again(callId) ?? asked;
      const toolName = toolNames.get(id) ?? textOf(rawItem.name) ?? '';
      const { output, files, errorText } = readOutput(
        item,
        isToolError && ((given) => isToolError(given, { toolName })),
      );
      settle(id, output, errorText, asked);
      for (const file of files) accumulator.part(file);
    },
    /** A call waits until somebody allows it. */
    ask(rawItem: Loose, item: Loose): void {
      const call = readCall(rawItem) as Call;
      const known = ids.get(call.callId) ?? '';
      // A run that still waits tells so again.
      if (!answered.has(known) && approvals.isAsked(approvalOf(known))) return;
      const isNew = known === '';
      const toolName = textOf(item.toolName) ?? call.toolName;
      const input = call.input ?? {};
      ensureStep();
      const toolCallId = open({ ...call, toolName });
      if (kindOf(rawItem) === 'mcp_approval_request') hosted.add(toolCallId);
      else if (isNew) nested.add(toolCallId);
      accumulator.toolInput(toolCallId, toolName, input, RUNS_WITH_THE_AGENT);
      const agent = nameOf(item.agent);
      approvals.ask({
        ...{ approvalId: approvalOf(toolCallId), toolCallId, toolName, input },
        ...(agent !== undefined && { agent }),
      });
    },
    approvalIdOf(rawItem: Loose): string {
      const callId = callIdOf(rawItem) ?? '';
      return approvalOf(ids.get(callId) ?? callId);
    },
    /** The response is over, and with it what ran inside its tools. */
    nextResponse(): void {
      streaming.clear();
      for (const id of nested) settle(id, null);
      nested.clear();
      for (const id of hosted) {
        // What was refused is not made; the rest has this response to be made in.
        if (approvals.refuse(id)) answered.add(id);
        else nested.add(id);
      }
      hosted.clear();
    },
    /** The turn ends while calls wait that cannot be left as they are: they say why. */
    pause(): void {
      for (const id of ids.values()) {
        if (!answered.has(id) && !approvals.isOnCall(id)) accumulator.toolError(id, WAITS);
      }
    },
    /** A call of the message that is gone on with. */
    goOnWith(part: Loose): void {
      const { type, toolCallId, state, approval } = part;
      if (typeof toolCallId !== 'string' || typeof type !== 'string') return;
      const name =
        type === 'dynamic-tool' ? (textOf(part.toolName) ?? '') : type.slice('tool-'.length);
      ids.set(toolCallId, toolCallId);
      toolNames.set(toolCallId, name);
      if (typeof state === 'string' && state.startsWith('output-')) {
        answered.add(toolCallId);
        if (part.errorText === WAITS) {
          givenUp.set(toolCallId, { toolName: name, input: part.input });
        }
        return;
      }
      // The tools of the run answer before its next response; nobody answers for the others.
      if (isLoose(approval)) hosted.add(toolCallId);
      // One that was refused waits for its denial.
      const isAllowed = !isLoose(approval) || approval.approved === true;
      const phase = isAllowed ? 'called' : 'approval';
      const flags = type === 'dynamic-tool' ? { dynamic: true } : {};
      accumulator.knownCall(toolCallId, {
        name,
        flags: { ...RUNS_WITH_THE_AGENT, ...flags },
        phase,
      });
    },
  };
}
