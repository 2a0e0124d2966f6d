import type { Chunk } from '../../chunks.ts';
import { compactChunks } from '../../compact.ts';
import { QUESTION_ANSWERED, QUESTION_EXPIRED, SabirError } from '../../errors.ts';
import { foldChunks } from '../../fold.ts';
import type { UIMessage } from '../../message.ts';
import type { Logger } from '../../translator.ts';
import type { User } from '../../turns/upstream.ts';
import { toDecision } from './approvals.ts';
import type {
  ApprovalRequest,
  Decision,
  NamedAgent,
  OpenAIAgentsOptions,
  QuestionTerms,
} from './events.ts';
import { decide, type InterruptedState } from './interrupted-state.ts';
import { type AgentInputItem, toAgentInput } from './to-agent-input.ts';
import { openRun, type StreamedRun } from './to-chunks.ts';
import { createOpenAIAgentsTranslator, type OpenAIAgentsTranslator } from './translate.ts';

/** A run that waits for somebody's word, as it outlives the process that asked. */
export type PendingRun = {
  messageId: string;
  /** Whose run it is: who asked, not who happens to come back first. */
  userId: string;
  /** The run, in the SDK's own serialisation. */
  state: string;
  /** What viewers have been told, the questions included. */
  chunks: Chunk[];
};

/** Where runs wait: a `Map` is one, a table or Redis is one that outlives the process. */
export interface PendingRuns {
  get(chatKey: string): PendingRun | undefined | Promise<PendingRun | undefined>;
  set(chatKey: string, run: PendingRun): unknown;
  /** `false` if there was nothing to delete: then somebody else has gone on with the run. */
  delete(chatKey: string): unknown;
}

/** The turn as the gateway gives it to a handler, as far as it is looked at. */
export type AgentTurn = {
  chatKey: string;
  messageId: string;
  isRestored: boolean;
  user: User;
  sessionId: string;
  chatId: string;
  text: string;
  messages: UIMessage[];
  body: Record<string, unknown>;
  signal: AbortSignal;
  answer(questionId: string): Promise<unknown>;
};

export type AgentTurnsOptions = Pick<
  OpenAIAgentsOptions,
  'sendReasoning' | 'isToolError' | 'errorText'
> & {
  /** The agent that begins. */
  agent: NamedAgent;
  /** The SDK's `run`, or a `Runner`'s. */
  run: (agent: never, input: never, options: never) => Promise<StreamedRun & { state: unknown }>;
  /** The SDK's `RunState`: with it, a question outlives a restart of the process. */
  RunState?: { fromString(agent: never, text: string): Promise<unknown> };
  /** What `run` is given beside the stream and the signal: `context`, `session`, `maxTurns`. */
  options?: (turn: AgentTurn) => object | Promise<object>;
  /** Default: the whole conversation; with a `session`, the last message of it. */
  input?: (turn: AgentTurn) => string | unknown[] | Promise<string | unknown[]>;
  /** Default: the memory of this process. */
  pending?: PendingRuns;
  /** What a question says, and who may answer it. */
  question?: (request: ApprovalRequest, turn: AgentTurn) => QuestionTerms;
  /** Hears of a store that fails. Message content never goes there. */
  logger?: Logger;
};

const WITHDRAWN = 'Another message came instead of an answer.';
const EXPIRED = 'Nobody answered in time.';

/**
 * An agent of the OpenAI Agents SDK behind the gateway: what `asUpstream` takes.
 *
 * ```ts
 * const turns = createAgentTurns({ agent, run, RunState });
 * createChatGateway({ upstream: asUpstream(turns.answer, turns), … });
 * ```
 *
 * A run that is interrupted asks, waits, and goes on in the same turn and the same message. What it
 * needs for that is stored before anybody is asked.
 */
export function createAgentTurns(options: AgentTurnsOptions) {
  const { agent, RunState } = options;
  const pending: PendingRuns = options.pending ?? new Map<string, PendingRun>();
  /** Turns that wait here, and how to have them wait no longer. */
  const waiting = new Map<string, AbortController>();
  const run = options.run as (
    agent: NamedAgent,
    input: string | readonly unknown[] | InterruptedState,
    options: object,
  ) => Promise<StreamedRun & { state: InterruptedState }>;

  async function inputOf(
    turn: AgentTurn,
    runOptions: object,
  ): Promise<string | readonly unknown[]> {
    if (options.input) return options.input(turn);
    const hasSession = 'session' in runOptions && runOptions.session !== undefined;
    const messages = hasSession
      ? turn.messages.slice(turn.messages.findLastIndex(({ role }) => role === 'user'))
      : turn.messages;
    const items: AgentInputItem[] = toAgentInput(messages);
    return items.length > 0 ? items : turn.text;
  }

  /** False if it could not be stored. That costs the question its second life, not its first. */
  async function keep(chatKey: string, run: () => PendingRun): Promise<boolean> {
    if (!RunState) return false;
    try {
      await pending.set(chatKey, run());
      return true;
    } catch (error) {
      options.logger?.warn('the run that waits could not be stored', { error });
      return false;
    }
  }

  async function forget(chatKey: string): Promise<void> {
    try {
      await pending.delete(chatKey);
    } catch (error) {
      options.logger?.warn('the run that waits could not be deleted', { error });
    }
  }

  /** Before its tools run: whatever happens from here on, they do not run a second time. */
  async function take(chatKey: string): Promise<void> {
    const isThere = await pending.delete(chatKey);
    if (isThere === false) throw new SabirError(QUESTION_ANSWERED);
  }

  async function restore(turn: AgentTurn) {
    const saved = await pending.get(turn.chatKey);
    // Answered elsewhere, or its time ran out, since the gateway looked.
    if (!saved || !RunState) throw new SabirError(QUESTION_EXPIRED);
    try {
      const state = (await RunState.fromString(agent as never, saved.state)) as InterruptedState;
      return { saved, state, message: foldChunks(saved.chunks) };
    } catch (cause) {
      // It stays where it is: the next message of the chat takes it away.
      options.logger?.warn('the run that waits could not be read', { error: cause });
      throw new SabirError(QUESTION_EXPIRED, undefined, { cause });
    }
  }

  /** What `asUpstream` asks after a restart: whether a run of this chat waits. */
  async function findWaiting(where: {
    chatKey: string;
  }): Promise<{ messageId: string } | undefined> {
    const saved = await pending.get(where.chatKey);
    return saved && { messageId: saved.messageId };
  }

  /** Tells viewers what each answer was, and the run. */
  async function* waitForAnswers(
    turn: AgentTurn,
    state: InterruptedState,
    translator: OpenAIAgentsTranslator,
    signal: AbortSignal,
  ): AsyncGenerator<Chunk, void, undefined> {
    for (const item of state.getInterruptions()) {
      const approvalId = translator.approvalIdOf(item);
      const decision = await decisionOn(turn.answer(approvalId), signal);
      if (decision === 'expired') {
        state.reject(item, { message: EXPIRED });
        yield* translator.push({ type: 'approval_expired', approvalId });
        continue;
      }
      decide(state, item, decision);
      yield* translator.push({ type: 'approval_answered', approvalId, ...decision });
    }
  }

  async function* converse(
    turn: AgentTurn,
    translator: OpenAIAgentsTranslator,
    begun: { state: InterruptedState; said: Chunk[] } | undefined,
    withdrawal: AbortSignal,
  ): AsyncGenerator<Chunk, void, undefined> {
    const { chatKey, messageId, user, signal } = turn;
    const runOptions = { ...(await options.options?.(turn)), stream: true, signal };
    let said = begun?.said ?? [];
    let state = begun?.state;
    let isKept = begun !== undefined;
    for (;;) {
      if (state) {
        for await (const chunk of waitForAnswers(turn, state, translator, withdrawal)) {
          said.push(chunk);
          yield chunk;
        }
        if (isKept) await take(chatKey);
      }
      const running = await run(agent, state ?? (await inputOf(turn, runOptions)), runOptions);
      const { next } = openRun(running, translator);
      for (let chunks = await next(); chunks; chunks = await next()) {
        said.push(...chunks);
        yield* chunks;
      }
      const interruptions = running.interruptions ?? [];
      if (interruptions.length === 0) return;
      state = running.state;
      const questions = translator.push({ type: 'run_interrupted', interruptions });
      said = compactChunks([...said, ...questions]);
      withdrawal.throwIfAborted();
      // Before anybody is asked: whoever answers finds what to go on with.
      const waits = { messageId, userId: user.id, chunks: said, state };
      isKept = await keep(chatKey, () => ({ ...waits, state: waits.state.toString() }));
      yield* questions;
    }
  }

  return {
    async *answer(given: AgentTurn): AsyncGenerator<Chunk, void, undefined> {
      const { chatKey, messageId, signal, isRestored } = given;
      waiting.get(chatKey)?.abort();
      const withdrawal = new AbortController();
      waiting.set(chatKey, withdrawal);
      const restored = isRestored ? await restore(given) : undefined;
      if (!isRestored) await forget(chatKey);
      const said = restored ? [...restored.saved.chunks] : [];
      const turn = restored ? { ...given, user: asker(given.user, restored.saved) } : given;
      const { question, agent: _, ...shared } = options;
      const translator = createOpenAIAgentsTranslator({
        ...{ ...shared, agent: agent.name, messageId, approvals: true },
        ...(question && { question: (request) => question(request, turn) }),
        ...(restored && { message: restored.message }),
      });
      yield* said;
      const begun = restored && { state: restored.state, said };
      let isOver = false;
      try {
        yield* converse(turn, translator, begun, withdrawal.signal);
        isOver = true;
        yield* translator.end({ status: 'finished' });
      } catch (error) {
        if (signal.aborted) throw error;
        isOver = true;
        if (withdrawal.signal.aborted) {
          yield* translator.end({ status: 'stopped', reason: WITHDRAWN });
        } else yield* translator.end(undefined, error);
      } finally {
        const isOurs = waiting.get(chatKey) === withdrawal;
        if (isOurs) waiting.delete(chatKey);
        if (isOurs && (isOver || isStop(signal))) await forget(chatKey);
      }
    },
    ...(RunState && { waiting: findWaiting }),
  };
}

/** Of somebody else than who came back no more is known than the id. */
function asker(user: User, { userId }: PendingRun): User {
  return user.id === userId ? user : { id: userId };
}

/** Somebody stopped the turn. One that was let go, as when the gateway restarts, may still go on. */
function isStop({ aborted, reason }: AbortSignal): boolean {
  return aborted && !(reason instanceof SabirError);
}

/** Rejects when the turn is stopped, or another message came. */
async function decisionOn(
  answer: Promise<unknown>,
  signal: AbortSignal,
): Promise<Decision | 'expired'> {
  const { promise: withdrawn, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort);
  try {
    return toDecision(await Promise.race([answer, withdrawn]));
  } catch (error) {
    if (error instanceof SabirError && error.code === QUESTION_EXPIRED.code) return 'expired';
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
