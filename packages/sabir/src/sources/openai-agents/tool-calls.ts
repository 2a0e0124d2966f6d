import type { MessageAccumulator } from '../../core/accumulator.ts';
import type { Loose } from '../../core/loose.ts';
import type { createApprovals } from './approvals.ts';
import { isLoose, nameOf, type OpenAIAgentsOptions, textOf, WAITS } from './events.ts';
import { readOutput, toUrl } from './outputs.ts';
import type { Signal } from './raw-model.ts';
import { type Call, callIdOf, kindOf, readCall, readHostedOutput } from './read-call.ts';

/** Tools of a run work beside the agent, never in the client. */
const RUNS_WITH_THE_AGENT = { providerExecuted: true };

const numbered = (callId: string, n: number) => (n === 1 ? callId : `${callId}-${n}`);
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
  /** How often the model has used an id. */
  const uses = new Map<string, number>();
  /** Which call an interruption is about; two calls inside of tools may have one id. */
  const claims = new Map<string, string>();
  const claimed = new Set<string>();
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
    let n = uses.get(callId) ?? 1;
    while (answered.has(numbered(callId, n))) n++;
    uses.set(callId, n);
    const id = numbered(callId, n);
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

  /**
   * What an interruption is about. Nobody may say yes to one call and have another made: what is
   * not the very call that is on the screen is a call of its own.
   */
  function claim(item: Loose, nth: number): { id: string; isNew: boolean; call: Call } {
    const rawItem = item.rawItem as Loose;
    const found = readCall(rawItem) as Call;
    const call = { ...found, toolName: textOf(item.toolName) ?? found.toolName };
    const key = JSON.stringify([call.callId, call.toolName, call.input, nameOf(item.agent), nth]);
    const known = claims.get(key);
    if (known !== undefined && !answered.has(known)) return { id: known, isNew: false, call };
    for (let n = 1; ; n++) {
      const id = numbered(call.callId, n);
      if (claimed.has(id) || answered.has(id)) continue;
      const toolName = toolNames.get(id);
      if (toolName !== undefined && toolName !== call.toolName) continue;
      claims.set(key, id);
      claimed.add(id);
      toolNames.set(id, call.toolName);
      if (!ids.has(call.callId)) ids.set(call.callId, id);
      return { id, isNew: toolName === undefined, call };
    }
  }

  function claimAll(interruptions: readonly Loose[]) {
    const seen = new Map<string, number>();
    return interruptions.map((item) => {
      const { callId, toolName, input } = readCall(item.rawItem as Loose) as Call;
      const same = JSON.stringify([callId, item.toolName ?? toolName, input, nameOf(item.agent)]);
      const nth = (seen.get(same) ?? 0) + 1;
      seen.set(same, nth);
      return { item, ...claim(item, nth) };
    });
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

  /** OpenAI's own search for tools does not say which of its calls it answers: the oldest. */
  function searchOf({ type, callId, call_id: other }: Loose): string | undefined {
    if (type !== 'tool_search_output' || textOf(callId) || textOf(other)) return undefined;
    for (const [key, id] of ids) {
      if (toolNames.get(id) === 'tool_search' && !answered.has(id)) return key;
    }
    return undefined;
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
      const callId = searchOf(rawItem) ?? (callIdOf(rawItem) as string);
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
    /** Calls wait until somebody allows them. */
    ask(interruptions: readonly Loose[]): void {
      for (const { item, id: toolCallId, isNew, call } of claimAll(interruptions)) {
        const { toolName, input = {} } = call;
        const approvalId = approvalOf(toolCallId);
        // A run that still waits tells so again.
        if (approvals.isAsked(approvalId)) continue;
        const rawItem = item.rawItem as Loose;
        ensureStep();
        if (kindOf(rawItem) === 'mcp_approval_request') hosted.add(toolCallId);
        else if (isNew) nested.add(toolCallId);
        accumulator.toolInput(toolCallId, toolName, input, RUNS_WITH_THE_AGENT);
        const agent = nameOf(item.agent);
        const namespace = textOf(rawItem.namespace);
        approvals.ask({
          approvalId,
          toolCallId,
          toolName,
          input,
          ...(namespace !== undefined && { namespace }),
          ...(agent !== undefined && { agent }),
        });
      }
    },
    approvalIdsOf: (interruptions: readonly Loose[]) =>
      claimAll(interruptions).map(({ id }) => approvalOf(id)),
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
