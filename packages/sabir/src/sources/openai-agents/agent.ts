import type { Chunk } from '../../core/chunks.ts';
import { compactChunks } from '../../core/compact.ts';
import { type Decision, toDecision } from '../../core/decision.ts';
import { QUESTION_ANSWERED, QUESTION_EXPIRED, SabirError } from '../../core/errors.ts';
import { foldChunks } from '../../core/fold.ts';
import { toSafeLogger } from '../../core/safe-logger.ts';
import type { Logger } from '../../core/translator.ts';
import { unlessAborted, within } from '../../core/within.ts';
import type { Agent, AgentPrompt } from '../../turns/agent.ts';
import type { User, WaitingTurn } from '../../turns/upstream.ts';
import type { ApprovalRequest, NamedAgent, OpenAIAgentsOptions, QuestionTerms } from './events.ts';
import { decideAll, type InterruptedState } from './interrupted-state.ts';
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

/** How long a store may take until the question is asked without it. */
const STORE_MS = 10_000;

/** Where runs wait: a `Map` is one, a table or Redis is one that outlives the process. */
export interface PendingRuns {
  get(chatKey: string): PendingRun | undefined | Promise<PendingRun | undefined>;
  set(chatKey: string, run: PendingRun): unknown;
  /** `false` if there was nothing to delete: then somebody else has gone on with the run. */
  delete(chatKey: string): unknown;
}

export type AgentsSdkAgentOptions = Pick<
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
  options?: (prompt: AgentPrompt) => object | Promise<object>;
  /** Default: the whole conversation; with a `session`, the last message of it. */
  input?: (prompt: AgentPrompt) => string | unknown[] | Promise<string | unknown[]>;
  /** Default: the memory of this process. */
  pending?: PendingRuns;
  /** What a question says, and who may answer it. */
  question?: (request: ApprovalRequest, prompt: AgentPrompt) => QuestionTerms;
  /** Hears of a store that fails. Message content never goes there. */
  logger?: Logger;
};

/** An agent whose answer can be read with `for await`, by an application that wraps it. */
export interface AgentsSdkAgent extends Agent {
  prompt(prompt: AgentPrompt): AsyncGenerator<Chunk, void, undefined>;
}

type Restored = { userId: string; said: Chunk[]; state: InterruptedState | undefined };

const WITHDRAWN = 'Another message came instead of an answer.';

/**
 * An agent of the OpenAI Agents SDK, behind a gateway or in a session.
 *
 * ```ts
 * createChatGateway({ upstream: asUpstream(agentsSdkAgent({ agent, run, RunState })), … });
 * ```
 *
 * A run that is interrupted asks, waits, and goes on in the same turn and the same message. What it
 * needs for that is stored before anybody is asked.
 */
export function agentsSdkAgent(options: AgentsSdkAgentOptions): AgentsSdkAgent {
  const logger = toSafeLogger(options.logger);
  const { agent, RunState } = options;
  if (typeof agent?.name !== 'string') throw new TypeError('agent is no agent of the Agents SDK.');
  if (typeof options.run !== 'function') throw new TypeError('run is not the SDK’s run function.');
  const pending: PendingRuns = options.pending ?? new Map<string, PendingRun>();
  /** Turns that wait here, and how to have them wait no longer. */
  const waiting = new Map<string, AbortController>();
  const run = options.run as (
    agent: NamedAgent,
    input: string | readonly unknown[] | InterruptedState,
    options: object,
  ) => Promise<StreamedRun & { state: InterruptedState }>;

  async function inputOf(
    turn: AgentPrompt,
    runOptions: object,
  ): Promise<string | readonly unknown[]> {
    if (options.input) return options.input(turn);
    const hasSession = 'session' in runOptions && runOptions.session !== undefined;
    const last = turn.messages.findLast(({ role }) => role === 'user');
    const items: AgentInputItem[] = toAgentInput(hasSession && last ? [last] : turn.messages);
    return items.length > 0 ? items : turn.text;
  }

  /** A store's error may quote what it was to store. */
  function warn(message: string, error: unknown): void {
    logger?.warn(message, { error });
  }

  /** False if it could not be stored. That costs the question its second life, not its first. */
  async function keep(
    chatKey: string,
    told: Omit<PendingRun, 'state'>,
    state: InterruptedState,
  ): Promise<boolean> {
    if (!RunState) return false;
    let storing: unknown;
    const { messageId } = told;
    try {
      storing = pending.set(chatKey, { ...told, state: state.toString() });
      await inTime(storing);
      return true;
    } catch (error) {
      warn('the run that waits could not be stored', error);
      // What lands late would ask again for what has been decided meanwhile.
      Promise.resolve(storing)
        .then(() => forgetOwn(chatKey, messageId))
        .catch(() => undefined);
      return false;
    }
  }

  async function forget(chatKey: string): Promise<void> {
    try {
      await inTime(pending.delete(chatKey));
    } catch (error) {
      warn('the run that waits could not be deleted', error);
    }
  }

  /** Not what a later turn of the chat has stored there. */
  async function forgetOwn(chatKey: string, messageId: string): Promise<void> {
    if ((await pending.get(chatKey))?.messageId === messageId) await forget(chatKey);
  }

  /** Before its tools run: whatever happens from here on, they do not run a second time. */
  async function take(chatKey: string): Promise<void> {
    const isThere = await pending.delete(chatKey);
    if (isThere === false) throw new SabirError(QUESTION_ANSWERED);
  }

  /** Undefined state: what was said is there, and nobody can go on with it. */
  async function load({ chatKey }: AgentPrompt): Promise<Restored> {
    const saved = await pending.get(chatKey);
    // Answered elsewhere, or its time ran out, since the gateway looked.
    if (!saved || !RunState) throw new SabirError(QUESTION_EXPIRED);
    const restored = { userId: saved.userId, said: [...saved.chunks] };
    try {
      const state = await RunState.fromString(agent as never, saved.state);
      return { ...restored, state: state as InterruptedState };
    } catch (error) {
      warn('the run that waits could not be read', error);
      return { ...restored, state: undefined };
    }
  }

  /** Whether a run of this chat waits, as after a restart. */
  async function restore({ chatKey }: { chatKey: string }): Promise<WaitingTurn | undefined> {
    const saved = await pending.get(chatKey);
    return saved && { messageId: saved.messageId, userId: saved.userId };
  }

  /** Waits until all is answered, and tells viewers. What was answered before a restart stays so. */
  async function* waitForAnswers(
    turn: AgentPrompt,
    approvalIds: readonly string[],
    translator: OpenAIAgentsTranslator,
    signal: AbortSignal,
  ): AsyncGenerator<{ chunks: Chunk[]; isLast: boolean }, void, undefined> {
    const isOpen = (id: string) => translator.decisionOn(id) === undefined;
    for (const [at, approvalId] of approvalIds.entries()) {
      if (!isOpen(approvalId)) continue;
      const isLast = !approvalIds.slice(at + 1).some(isOpen);
      const decision = await decisionOn(turn.answer(approvalId), signal);
      const chunks =
        decision === 'expired'
          ? translator.push({ type: 'approval_expired', approvalId })
          : translator.push({ type: 'approval_answered', approvalId, ...decision });
      yield { chunks, isLast };
    }
  }

  async function* converse(
    turn: AgentPrompt,
    translator: OpenAIAgentsTranslator,
    begun: { state: InterruptedState; said: Chunk[] } | undefined,
    withdrawal: AbortSignal,
  ): AsyncGenerator<Chunk, void, undefined> {
    const { chatKey, messageId, user, signal } = turn;
    const runOptions = { ...(await options.options?.(turn)), stream: true, signal };
    let said = begun?.said ?? [];
    let state = begun?.state;
    let isKept = begun !== undefined;

    async function store(waits: InterruptedState): Promise<void> {
      const told = { messageId, userId: user.id, chunks: [...said] };
      isKept = await keep(chatKey, told, waits);
      // Another message has come meanwhile, and found nothing to take away.
      if (withdrawal.aborted) await forgetOwn(chatKey, messageId);
      withdrawal.throwIfAborted();
    }

    async function storeAgain(waits: InterruptedState): Promise<void> {
      const kept = await pending.get(chatKey);
      if (kept?.messageId !== messageId) throw new SabirError(QUESTION_ANSWERED);
      await store(waits);
    }

    for (;;) {
      if (state) {
        const interruptions = state.getInterruptions();
        const approvalIds = translator.approvalIdsOf(interruptions);
        for await (const answer of waitForAnswers(turn, approvalIds, translator, withdrawal)) {
          said.push(...answer.chunks);
          // An answer that was taken counts, also when others are still missing.
          if (isKept && !answer.isLast) await storeAgain(state);
          yield* answer.chunks;
        }
        if (isKept) await take(chatKey);
        isKept = false;
        decideAll(state, interruptions, approvalIds.map(translator.decisionOn));
      }
      const running = await run(agent, state ?? (await inputOf(turn, runOptions)), runOptions);
      const { next, leave } = openRun(running, translator);
      try {
        for (let chunks = await next(); chunks; chunks = await next()) {
          if (RunState) said.push(...chunks);
          yield* chunks;
        }
      } finally {
        // Also where the run takes no notice of its signal.
        leave();
      }
      const interruptions = running.interruptions ?? [];
      if (interruptions.length === 0) return;
      state = running.state;
      const questions = translator.push({ type: 'run_interrupted', interruptions });
      said = compactChunks([...said, ...questions]);
      // Before anybody is asked: whoever answers finds what to go on with.
      await store(state);
      yield* questions;
    }
  }

  return {
    name: 'openai-agents',
    concurrent: true,
    needsHistory: true,
    async *prompt(given: AgentPrompt): AsyncGenerator<Chunk, void, undefined> {
      const { chatKey, messageId, signal, isRestored } = given;
      const withdrawal = new AbortController();
      waiting.get(chatKey)?.abort();
      waiting.set(chatKey, withdrawal);
      let translator: OpenAIAgentsTranslator | undefined;
      let isOver = false;
      try {
        const restored = isRestored ? await load(given) : undefined;
        if (!isRestored) await forget(chatKey);
        const turn = restored ? { ...given, user: asker(given.user, restored) } : given;
        const { question, agent: _, ...shared } = options;
        const { state, said = [] } = restored ?? {};
        translator = createOpenAIAgentsTranslator({
          ...shared,
          agent: agent.name,
          messageId,
          approvals: true,
          ...(question && { question: (request) => question(request, turn) }),
          ...(restored && { message: foldChunks(said) }),
        });
        yield* [...said];
        if (restored && !state) throw new SabirError(QUESTION_EXPIRED);
        yield* converse(turn, translator, state && { state, said }, withdrawal.signal);
        isOver = true;
        yield* translator.end({ status: 'finished' });
      } catch (error) {
        if (signal.aborted) throw error;
        isOver = true;
        translator ??= createOpenAIAgentsTranslator({ messageId });
        if (withdrawal.signal.aborted) {
          yield* translator.end({ status: 'stopped', reason: WITHDRAWN });
        } else yield* translator.end(undefined, error);
      } finally {
        const isOurs = waiting.get(chatKey) === withdrawal;
        if (isOurs) waiting.delete(chatKey);
        if (isOurs && (isOver || isStop(signal))) await forget(chatKey);
      }
    },
    ...(RunState && { restore }),
  };
}

/** Of somebody else than who came back no more is known than the id. */
function asker(user: User, { userId }: { userId: string }): User {
  return user.id === userId ? user : { id: userId };
}

/** Somebody stopped the turn. One that was let go, as when the gateway restarts, may still go on. */
function isStop({ aborted, reason }: AbortSignal): boolean {
  return aborted && !(reason instanceof SabirError);
}

async function inTime(done: unknown): Promise<void> {
  await within(STORE_MS, Promise.resolve(done), () => {
    throw new Error('It took too long.');
  });
}

/** Rejects when the turn is stopped, or another message came. */
async function decisionOn(
  answer: Promise<unknown>,
  signal: AbortSignal,
): Promise<Decision | 'expired'> {
  try {
    return toDecision(await unlessAborted(answer, signal));
  } catch (error) {
    if (error instanceof SabirError && error.code === QUESTION_EXPIRED.code) return 'expired';
    throw error;
  }
}
