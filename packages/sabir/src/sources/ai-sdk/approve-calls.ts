import type { Chunk, DataChunk } from '../../core/chunks.ts';
import { toDecision } from '../../core/decision.ts';
import type { AnswerBy } from '../../core/roles.ts';
import { readUntilAborted, untilAborted } from '../../core/until-aborted.ts';
import type { AgentAnswer, AgentPrompt, AgentToolOutput } from '../../turns/agent.ts';

/** What people decided about a call that asked to be approved. */
export type Approval = {
  approvalId: string;
  callId: string;
  /** The call runs at the model's provider. */
  providerExecuted: boolean;
  approved: boolean;
  /** Why not. */
  reason?: string;
};

/** What came of a call that a client was to run. */
export type ClientOutput = { callId: string; toolName: string; result: AgentToolOutput };

/** What the people and clients of a turn have said to the calls that its stream ended at. */
export type Settled = { approvals: Approval[]; outputs: ClientOutput[] };

type Call = { toolName: string; input: unknown; providerExecuted: boolean };
type Request = { approvalId: string; callId: string };
type Asked = Request & { answer: Promise<AgentAnswer> };
/** Who may answer the question about a call, and until when. */
type Terms = { answerBy?: unknown; expiresAt?: unknown };
type CallQuestion = Terms & { toolCallId: string };

/** As much of a call's input as a person reads before deciding. */
const SHOWN_INPUT = 1_000;
const CHOICES = ['Approve', 'Deny'];
const NOT_APPROVED = 'It was not approved.';
const TOO_LATE = 'Nobody answered in time.';

/**
 * The chunks of an answer that takes several streams, because a stream ends where calls ask to be
 * approved, and where a call has no tool on the server. Asks people, waits for the client that runs the tool, then goes on with
 * the stream that `open` gives for what they said. The first stream is opened with nothing settled.
 *
 * Viewers get the prompt's questions, which are approval requests too, instead of the stream's own requests; a refused
 * call ends with an error that says why.
 */
export async function* approveCalls(
  prompt: Pick<AgentPrompt, 'ask' | 'toolOutput' | 'signal'>,
  open: (settled: Settled) => unknown,
  runsInClient: (toolName: string) => boolean = () => true,
): AsyncGenerator<Chunk> {
  const { signal } = prompt;
  const calls = new Map<string, Call>();
  /** The call of each approval, and why calls were refused. */
  const callIds = new Map<string, string>();
  const refusals = new Map<string, string>();
  let settled: Settled | undefined = { approvals: [], outputs: [] };
  for (let streams = 0; settled; streams++) {
    const before: Settled = settled;
    const asked: Asked[] = [];
    /** Calls of this stream that have no output yet and do not run at the model's provider. */
    const unanswered = new Set<string>();
    /** What the stream's own questions say of calls, and requests that such a question may follow. */
    const terms = new Map<string, Terms>();
    const requests = new Map<string, Request>();
    let finish: Chunk | undefined;
    for await (const chunk of readUntilAborted<Chunk>(() => open(before), signal)) {
      // The translator counts what is no chunk.
      if (typeof chunk?.type !== 'string') yield chunk;
      else if (chunk.type === 'finish') finish = chunk;
      else if (isCallQuestion(chunk)) {
        const { toolCallId } = chunk.data;
        terms.set(toolCallId, chunk.data);
        const request = requests.get(toolCallId);
        requests.delete(toolCallId);
        if (request) asked.push(ask(request, chunk.data));
      } else if (chunk.type === 'tool-approval-request') {
        const { approvalId, toolCallId: callId } = chunk;
        callIds.set(approvalId, callId);
        // The agent has decided by itself.
        if ((chunk as { isAutomatic?: boolean }).isAutomatic === true) continue;
        const known = terms.get(callId);
        if (known) asked.push(ask({ approvalId, callId }, known));
        else requests.set(callId, { approvalId, callId });
      } else if (chunk.type === 'tool-approval-response') {
        if (!chunk.approved) refuse(callIds.get(chunk.approvalId), chunk.reason);
      } else if (chunk.type !== 'start' || streams === 0) {
        if (chunk.type === 'tool-input-available') {
          if (chunk.providerExecuted !== true && runsInClient(chunk.toolName)) {
            unanswered.add(chunk.toolCallId);
          }
        } else if (isEnd(chunk)) unanswered.delete(chunk.toolCallId);
        yield see(chunk);
      }
    }
    if (signal.aborted) return;
    for (const request of requests.values()) asked.push(ask(request));
    for (const { callId } of asked) unanswered.delete(callId);
    // A stream that broke off may have lost the outputs.
    if (!finish) unanswered.clear();
    if (asked.length + unanswered.size === 0) {
      if (finish) yield finish;
      return;
    }
    const [approvals, outputs] = [asked.map(decide), [...unanswered].map(awaitClient)];
    settled = await untilAborted(
      Promise.all([Promise.all(approvals), Promise.all(outputs)]).then(
        ([approvals, outputs]): Settled => ({ approvals, outputs }),
      ),
      signal,
    );
    for (const { callId, approved, reason } of settled?.approvals ?? []) {
      if (!approved) refuse(callId, reason);
    }
  }

  async function awaitClient(callId: string): Promise<ClientOutput> {
    const { toolName = 'unknown' } = calls.get(callId) ?? {};
    return { callId, toolName, result: await prompt.toolOutput(callId) };
  }

  function ask(request: Request, { answerBy, expiresAt }: Terms = {}): Asked {
    const answer = prompt.ask({
      text: toQuestion(calls.get(request.callId)),
      options: CHOICES,
      callId: request.callId,
      // Also one that cannot be understood: only an owner may answer then.
      ...(answerBy !== undefined && { answerBy: answerBy as AnswerBy }),
      ...(typeof expiresAt === 'number' && { expiresInMs: expiresAt - Date.now() }),
    });
    answer.catch(() => {
      // It stays unawaited if the stream fails first.
    });
    return { ...request, answer };
  }

  async function decide({ approvalId, callId, answer }: Asked): Promise<Approval> {
    const given = await answer;
    const { providerExecuted = false } = calls.get(callId) ?? {};
    const about = { approvalId, callId, providerExecuted };
    if (given.status === 'expired') return { ...about, approved: false, reason: TOO_LATE };
    return { ...about, ...toDecision(given.answer) };
  }

  function refuse(callId: string | undefined, reason: string | undefined): void {
    if (callId !== undefined) refusals.set(callId, reason || NOT_APPROVED);
  }

  /** Learns a call's input, and gives the chunk as viewers get it. */
  function see(chunk: Chunk): Chunk {
    if (chunk.type === 'tool-input-available') {
      const { toolName, input, providerExecuted = false } = chunk;
      calls.set(chunk.toolCallId, { toolName, input, providerExecuted });
    }
    if (!isEnd(chunk)) return chunk;
    const { toolCallId } = chunk;
    const isDenied = chunk.type === 'tool-output-denied';
    // There are agents that give the refusal as the call's output.
    const errorText = refusals.get(toolCallId) ?? (isDenied ? NOT_APPROVED : undefined);
    if (errorText === undefined) return chunk;
    const { providerExecuted = false } = calls.get(toolCallId) ?? {};
    const flags = providerExecuted ? { providerExecuted } : {};
    return { type: 'tool-output-error', toolCallId, errorText, ...flags };
  }
}

function isCallQuestion(chunk: Chunk): chunk is DataChunk & { data: CallQuestion } {
  if (chunk.type !== 'data-question') return false;
  return typeof (chunk.data as Partial<CallQuestion> | null)?.toolCallId === 'string';
}

type CallEnd = 'tool-output-available' | 'tool-output-error' | 'tool-output-denied';

function isEnd(chunk: Chunk): chunk is Extract<Chunk, { type: CallEnd }> {
  return chunk.type.startsWith('tool-output-');
}

function toQuestion(call: Call | undefined): string {
  const { toolName, input } = call ?? { toolName: 'unknown', input: undefined };
  const json = JSON.stringify(input) ?? '';
  const shown = json.length > SHOWN_INPUT ? `${json.slice(0, SHOWN_INPUT)}…` : json;
  return shown ? `Use the tool “${toolName}” with ${shown}?` : `Use the tool “${toolName}”?`;
}
