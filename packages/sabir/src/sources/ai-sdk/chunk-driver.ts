import type { Chunk, ChunkType } from '../../core/chunks.ts';
import { toDecision } from '../../core/decision.ts';
import { toErrorText } from '../../core/errors.ts';
import type { UIMessage } from '../../core/message.ts';
import type { AnswerBy } from '../../core/roles.ts';
import { readUntilAborted, untilAborted } from '../../core/until-aborted.ts';
import type { AgentDriver, DriverAnswer, DriverEvent, DriverPrompt } from '../../turns/driver.ts';
import { createChunkReader, type KnownCall } from './chunk-reader.ts';

/** What chunks have no word for. */
export type BesideChunks = Extract<DriverEvent, { type: 'usage' | 'status' | 'event' }>;
/** A generator's chunks are checked one by one; the AI SDK's own streams are taken as they are. */
export type DriverChunks =
  | AsyncIterable<Chunk | BesideChunks>
  | ReadableStream<Chunk | BesideChunks>
  | ReadableStream<{ type: ChunkType }>;

/** What was decided about a call that asked to be approved. */
export type Approval = {
  approvalId: string;
  callId: string;
  toolName: string;
  input: unknown;
  /** The call runs at the model's provider. */
  providerExecuted: boolean;
  approved: boolean;
  /** Why not. */
  reason?: string;
};

export type ChunkDriverOptions = {
  /** Default: `chunks`. */
  name?: string;
  /** `prompt.messages` is wanted. */
  needsHistory?: boolean;
  /**
   * The answer, as chunks: also from a stream of the AI SDK or of any source here. What it throws
   * fails the turn. It may end with calls that ask to be approved, if there is `proceed`.
   */
  answer(prompt: DriverPrompt): DriverChunks | Promise<DriverChunks>;
  /**
   * Goes on with an answer that ended with calls to be approved, now that people have decided.
   * `message` has these calls, for sources that want the message they go on with. Without it
   * nobody is asked: whoever writes the chunks does that with `prompt.ask`.
   */
  proceed?(
    approvals: Approval[],
    prompt: DriverPrompt,
    message: UIMessage,
  ): DriverChunks | Promise<DriverChunks>;
};

type Asked = { approvalId: string; callId: string; call: KnownCall; answer: Promise<DriverAnswer> };

/** As much of a call's input as a person reads before deciding. */
const SHOWN_INPUT = 1_000;
const CHOICES = ['Approve', 'Deny'];
const TOO_LATE = 'Nobody answered in time.';

/**
 * A driver out of anything that gives UI message chunks.
 *
 * ```ts
 * chunkDriver({ answer: ({ content, signal }) => toChunks(run(agent, content, { stream: true, signal })) });
 * ```
 *
 * A generator may also yield a driver's `usage`, `status` and `event`.
 */
export function chunkDriver(options: ChunkDriverOptions): AgentDriver {
  const { name = 'chunks', needsHistory } = options;
  return {
    name,
    ...(needsHistory !== undefined && { needsHistory }),
    prompt: (prompt) => answerPrompt(options, prompt),
  };
}

async function* answerPrompt(
  { answer, proceed }: ChunkDriverOptions,
  prompt: DriverPrompt,
): AsyncGenerator<DriverEvent> {
  const { signal } = prompt;
  const reader = createChunkReader();
  let open: (() => DriverChunks | Promise<DriverChunks>) | undefined = () => answer(prompt);
  while (open) {
    const asked: Asked[] = [];
    /** What the source's own questions say about calls, and requests that wait for that. */
    const terms = new Map<string, QuestionTerms>();
    const requests: ApprovalRequest[] = [];
    for await (const chunk of readUntilAborted<{ type: string }>(open, signal)) {
      const { type } = chunk ?? {};
      if (type === 'error') {
        yield* reader.endStream();
        throw new Error((chunk as { errorText?: string }).errorText || toErrorText(undefined));
      }
      if (type === 'abort') {
        asked.length = requests.length = 0;
        break;
      }
      if (proceed && isCallQuestion(chunk)) {
        // The question is asked by the request for its call, which may come before or after it.
        terms.set(chunk.data.toolCallId, chunk.data);
        for (const request of takeOf(chunk.data.toolCallId, requests)) asked.push(ask(request));
        continue;
      }
      if (type === 'usage' || type === 'status' || type === 'event') yield chunk as BesideChunks;
      else yield* reader.push(chunk);
      if (!proceed || !isRequest(chunk)) continue;
      if (terms.has(chunk.toolCallId)) asked.push(ask(chunk));
      else requests.push(chunk);
    }
    if (signal.aborted) return;
    for (const request of requests) asked.push(ask(request));
    yield* reader.endStream();
    open = undefined;
    if (!proceed || asked.length === 0) break;
    const approvals = await untilAborted(Promise.all(asked.map(decide)), signal);
    if (!approvals) return;
    for (const { callId, approved, reason } of approvals) {
      if (!approved) reader.refuse(callId, reason);
    }
    open = () => proceed(approvals, prompt, toMessage(approvals, prompt));

    function ask({ approvalId, toolCallId: callId }: ApprovalRequest): Asked {
      const call = reader.call(callId);
      const { answerBy, expiresAt } = terms.get(callId) ?? {};
      const answer = prompt.ask({
        text: toQuestion(call),
        options: [...CHOICES],
        callId,
        // Whatever it is: what cannot be understood is the owner's.
        ...(answerBy !== undefined && { answerBy: answerBy as AnswerBy }),
        ...(typeof expiresAt === 'number' && { expiresInMs: expiresAt - Date.now() }),
      });
      answer.catch(() => {
        // It stays unawaited if the stream fails first.
      });
      return { approvalId, callId, call, answer };
    }
  }
  yield* reader.end();
}

/** Who may answer the question about a call, and until when. */
type QuestionTerms = { toolCallId: string; answerBy?: unknown; expiresAt?: unknown };
type ApprovalRequest = { approvalId: string; toolCallId: string };

/** Not one that the agent has answered by itself. */
function isRequest(chunk: unknown): chunk is ApprovalRequest {
  const { type, isAutomatic } = (chunk ?? {}) as { type?: string; isAutomatic?: boolean };
  return type === 'tool-approval-request' && isAutomatic !== true;
}

function isCallQuestion(chunk: unknown): chunk is { data: QuestionTerms } {
  const { type, data } = (chunk ?? {}) as { type?: string; data?: { toolCallId?: unknown } };
  return type === 'data-question' && typeof data?.toolCallId === 'string';
}

/** Takes the requests for this call out of the list. */
function takeOf(callId: string, requests: ApprovalRequest[]): ApprovalRequest[] {
  const at = requests.findIndex(({ toolCallId }) => toolCallId === callId);
  return at < 0 ? [] : requests.splice(at, 1);
}

function toQuestion({ toolName, input }: KnownCall): string {
  const json = JSON.stringify(input) ?? '';
  const shown = json.length > SHOWN_INPUT ? `${json.slice(0, SHOWN_INPUT)}…` : json;
  return shown ? `Use the tool “${toolName}” with ${shown}?` : `Use the tool “${toolName}”?`;
}

async function decide({ approvalId, callId, call, answer }: Asked): Promise<Approval> {
  const given = await answer;
  const about = { approvalId, callId, ...call };
  if (given.status === 'expired') return { ...about, approved: false, reason: TOO_LATE };
  return { ...about, ...toDecision(given.answer) };
}

/** As the client of a later major has it when it answers. */
function toMessage(approvals: Approval[], { turnId }: DriverPrompt): UIMessage {
  const parts = approvals.map(({ approvalId: id, callId, toolName, input, approved, reason }) => ({
    type: `tool-${toolName}`,
    toolCallId: callId,
    state: 'approval-responded',
    input,
    approval: { id, approved, ...(reason && { reason }) },
  }));
  return { id: turnId, role: 'assistant', parts: parts as unknown as UIMessage['parts'] };
}
