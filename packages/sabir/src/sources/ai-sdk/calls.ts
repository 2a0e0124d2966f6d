import type { OpenTool, ToolCallOptions } from '../../core/accumulator-core.ts';
import type { Loose } from '../../core/loose.ts';

type State =
  | OpenTool['phase']
  /** Its input was refused; the AI SDK's own servers say so again as an output error. */
  | 'refused'
  | 'ended'
  /** Its step was taken back: gone from newer clients, still on the screen of older ones. */
  | 'withdrawn';
type Call = { name: string; flags: ToolCallOptions; step: number; state: State };

const STATE_AFTER = new Map<string, State>([
  ['tool-input-start', 'input'],
  ['tool-input-available', 'called'],
  ['tool-input-error', 'refused'],
]);

/**
 * Which tool calls a client knows, and what it can still be told of each. As strict as the
 * strictest client: what one of them dies of, or shows twice, none gets.
 */
export function createCalls() {
  const calls = new Map<string, Call>();
  const approvals = new Map<string, Call>();
  const withdrawn = new Set<Call>();
  let step = 0;

  /** A call that is taken back can come again in its own step only: older clients close it then. */
  function dropWithdrawn(): void {
    for (const call of withdrawn) call.state = 'ended';
    withdrawn.clear();
  }

  function takeInput(chunk: Loose, id: string, state: State): Loose | undefined {
    const known = calls.get(id);
    if (known && (hasEnded(known) || known.step !== step)) return undefined;
    const taken = known ? asBegun(chunk, known) : chunk;
    const name = taken.toolName as string;
    if (!known || withdrawn.delete(known)) {
      calls.set(id, { name, flags: flagsOf(taken), step, state });
    } else Object.assign(known, { name, state, flags: { ...known.flags, ...flagsOf(taken) } });
    return taken;
  }

  function takeOutput(chunk: Loose, id: string): Loose | undefined {
    const call = calls.get(id);
    const { type } = chunk;
    if (!call || call.state === 'withdrawn') return undefined;
    const isConfirmed = call.state === 'refused' && type === 'tool-output-error';
    if (hasEnded(call) && !isConfirmed) return undefined;
    if (type === 'tool-approval-request') return takeRequest(chunk, call);
    if (type === 'tool-output-available') {
      call.state = chunk.preliminary === true ? 'called' : 'ended';
      return withFlag(chunk, call);
    }
    call.state = 'ended';
    // Only an output can be preliminary: said of anything else it would confuse who reads on.
    const { preliminary, ...rest } = chunk;
    const taken = preliminary === undefined ? chunk : rest;
    return type === 'tool-output-error' ? withFlag(taken, call) : taken;
  }

  function takeRequest(chunk: Loose, call: Call): Loose | undefined {
    const approvalId = chunk.approvalId as string;
    const asker = approvals.get(approvalId);
    if (asker && asker !== call) return undefined;
    // A client keeps one approval a call: the older one can no longer be answered.
    for (const [id, other] of approvals) if (other === call) approvals.delete(id);
    approvals.set(approvalId, call);
    call.state = 'approval';
    return chunk;
  }

  function takeResponse(chunk: Loose): Loose | undefined {
    const call = approvals.get(chunk.approvalId as string);
    if (!call || call.state === 'withdrawn' || hasEnded(call)) return undefined;
    call.state = 'called';
    return chunk;
  }

  return {
    /** Its question has an end: what is not told of the call any more is missing, and not awaited. */
    settleApproval(approvalId: string): void {
      const call = approvals.get(approvalId);
      if (call?.state === 'approval') call.state = 'called';
    },
    /** The chunk, or a copy that fits the call it belongs to; undefined if no client could take it. */
    take(chunk: Loose): Loose | undefined {
      const type = chunk.type as string;
      if (type === 'tool-approval-response') return takeResponse(chunk);
      const id = chunk.toolCallId as string;
      if (type === 'tool-input-delta') {
        const call = calls.get(id);
        return call?.state === 'input' && call.step === step ? chunk : undefined;
      }
      const state = STATE_AFTER.get(type);
      return state ? takeInput(chunk, id, state) : takeOutput(chunk, id);
    },
    startStep(): void {
      step++;
      dropWithdrawn();
    },
    finishStep: dropWithdrawn,
    resetStep(): void {
      for (const call of calls.values()) {
        if (call.step !== step) continue;
        if (hasEnded(call)) call.state = 'ended';
        else {
          call.state = 'withdrawn';
          withdrawn.add(call);
        }
      }
    },
    /** What still waits for its input, its answer or its approval. */
    open(): Map<string, OpenTool> {
      const open = new Map<string, OpenTool>();
      for (const [id, { name, flags, state }] of calls) {
        if (state === 'input' || state === 'called' || state === 'approval') {
          open.set(id, { name, flags, phase: state });
        }
      }
      return open;
    },
  };
}

function hasEnded({ state }: Call): boolean {
  return state === 'ended' || state === 'refused';
}

function flagsOf({ providerExecuted, dynamic }: Loose): ToolCallOptions {
  const flags: ToolCallOptions = {};
  if (typeof providerExecuted === 'boolean') flags.providerExecuted = providerExecuted;
  if (typeof dynamic === 'boolean') flags.dynamic = dynamic;
  return flags;
}

/** A client finds the part of a call by its name and its flag: it keeps those it began with. */
function asBegun(chunk: Loose, call: Call): Loose {
  const flagged = withFlag(chunk, call);
  if (call.flags.dynamic || chunk.toolName === call.name) return flagged;
  return { ...flagged, toolName: call.name };
}

function withFlag(chunk: Loose, { flags }: Call): Loose {
  const dynamic = flags.dynamic === true;
  return dynamic === (chunk.dynamic === true) ? chunk : { ...chunk, dynamic };
}
