import {
  QUESTION_EXPIRED,
  SabirError,
  TURN_LOST,
  toShownText,
  UPSTREAM_DROPPED,
} from '../../core/errors.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import { type Source, toSource, untilAborted } from '../../core/until-aborted.ts';
import type { Agent, AgentPrompt, SessionEvent } from '../../turns/agent.ts';
import type { Prompt, TurnSink, UpstreamTurn } from '../../turns/upstream.ts';
import { createQuestions } from './questions.ts';
import { createRunSteering } from './run-steering.ts';
import { createChunkTranslator } from './translate.ts';

export type AgentRunOptions = {
  /** Awaited before the agent gets the prompt. If it rejects, the turn fails. */
  ready?: () => Promise<unknown>;
  /** The prompt waits behind others. */
  isQueued?: () => boolean;
  /** Takes what the agent emits. @default nothing */
  emit?(event: SessionEvent): void;
  /** How long people and clients have to answer, unless the agent says otherwise. */
  questionMs?: number | undefined;
  /** The message has the prompt's id, whatever the agent calls it. @default false */
  isMessageIdFixed?: boolean;
};

/** One prompt on its way through an agent. */
export type AgentRun = UpstreamTurn & {
  /** The turn has ended, though the agent may still work. */
  readonly isOver: boolean;
  /** Resolves when the agent has ended, which may be after its turn. Never rejects. */
  readonly ended: Promise<void>;
  /** Ends the turn with this outcome and aborts the agent, without waiting for it. */
  end(outcome: TurnOutcome): void;
  /** Ends the turn because its connection is gone. */
  drop(): void;
};

/** A generator that never waits gives this many chunks before other work gets its turn. */
const CHUNKS_PER_TICK = 128;
/** How long an agent may go on after its `finish`. */
const DRAIN_MS = 5_000;
const WEB = { channelType: 'web', channelId: 'default' };

/**
 * Runs one prompt of an agent. Owns the agent's signal and the turn's questions. The sink gets the
 * chunks as the agent gave them, to be pushed into `translator`, then one outcome, and nothing after it.
 */
export function runAgent(
  agent: Pick<Agent, 'prompt' | 'steer'>,
  prompt: Prompt,
  sink: TurnSink,
  options: AgentRunOptions = {},
): AgentRun {
  const stopping = new AbortController();
  const { signal } = stopping;
  const { questionMs, isMessageIdFixed = false } = options;
  const asked = { questionMs, askerId: prompt.user.id };
  const questions = createQuestions((chunk) => sink.event(chunk), asked);
  const steering = createRunSteering(agent, prompt, (chunk) => {
    if (!isOver && !signal.aborted) sink.event(chunk);
  });
  let source: Source<unknown> | undefined;
  let leaving: Promise<void> | undefined;
  /** The sink gets nothing more. */
  let isOver = false;
  let isTelling = false;
  /** The text of our own outcome, which is fit for people already. */
  let said: string | undefined;
  const translator = createChunkTranslator({
    messageId: prompt.messageId,
    isMessageIdFixed,
    errorText: (error) =>
      said !== undefined && error === said ? said : toShownText(error, prompt.errorText),
  });

  /** Does not wait: an agent that ignores its signal holds up no viewer. */
  function leave(): void {
    isOver = true;
    // By this reason an agent knows that no person has stopped it, and that it may go on later.
    stopping.abort(new SabirError(TURN_LOST));
    questions.close(signal.reason);
    leaveSource();
  }

  function leaveSource(): void {
    leaving ??= source?.leave();
    source = undefined;
  }

  function end(outcome: TurnOutcome): void {
    if (isOver) return;
    if (outcome.status === 'failed') said = outcome.message;
    leave();
    sink.close(outcome);
  }

  function fail(error: unknown): void {
    const code = error instanceof SabirError ? { code: error.code } : undefined;
    end({ status: 'failed', ...code, message: toShownText(error, prompt.errorText) });
  }

  async function run(): Promise<void> {
    // Nothing may reach the sink from inside `runAgent`.
    await untilAborted(Promise.resolve(options.ready?.()), signal);
    if (signal.aborted) return;
    const answering = agent.prompt(toAgentPrompt());
    steering.open();
    const opened = toSource<unknown>(await answering);
    source = opened;
    // Stopped before there was anything to leave.
    if (signal.aborted) return leaveSource();
    for (let count = 1; ; count++) {
      const { done, value } = await opened.next();
      if (signal.aborted) return;
      questions.beginStep(value);
      if (done) break;
      isTelling = true;
      sink.event(value);
      isTelling = false;
      questions.see(value);
      steering.see(value);
      if (signal.aborted) return;
      if (translator.ended) return drain(opened);
      if (count % CHUNKS_PER_TICK === 0) await nextTick();
    }
    source = undefined;
    end({ status: 'finished' });
  }

  function toAgentPrompt(): AgentPrompt {
    const { sessionId, chatId, chatKey, turnId, messageId, isRestored = false } = prompt;
    const { user, text, attachments, messages, body, traceparent, channel = WEB } = prompt;
    const { trigger = 'submit-message', replaces } = prompt;
    return {
      ...{ sessionId, chatId, chatKey, turnId, messageId, isRestored },
      ...{ user, text, attachments, messages, body, channel, trigger },
      ...(replaces !== undefined && { replaces }),
      ...(typeof body.model === 'string' && { model: body.model }),
      ...(traceparent && { traceparent }),
      signal,
      ask: questions.ask,
      answer: questions.wait,
      toolOutput: questions.toolOutput,
      emit: (event) => options.emit?.(event),
    };
  }

  /** The turn has ended, but the agent may have work left, such as saving the message. */
  async function drain(from: Source<unknown>): Promise<void> {
    isOver = true;
    questions.close(new SabirError(QUESTION_EXPIRED));
    const timer = setTimeout(leave, DRAIN_MS);
    (timer as { unref?: () => void }).unref?.();
    try {
      for (let count = 1; !(await from.next()).done && !signal.aborted; count++) {
        if (count % CHUNKS_PER_TICK === 0) await nextTick();
      }
    } finally {
      clearTimeout(timer);
      leave();
    }
  }

  const ended = run()
    .catch((error: unknown) => {
      // It has nothing more to give. What an abort makes it throw is no failure.
      source = undefined;
      if (!signal.aborted) fail(error);
    })
    .then(() => leaving);

  return {
    translator,
    ended,
    get isOver() {
      return isOver;
    },
    get isQueued() {
      return options.isQueued?.() ?? false;
    },
    stop(reason) {
      if (signal.aborted || isOver) return;
      stopping.abort(reason);
      questions.close(signal.reason);
      leaveSource();
      // The caller may add why it stops: it goes first.
      queueMicrotask(() => end({ status: 'stopped' }));
    },
    answer: ({ questionId, answer }) => questions.answer(questionId, answer),
    steer: steering.steer,
    expire: questions.expire,
    release() {
      // The agent has ended the turn by itself, and may go on to its own end.
      if (isTelling && translator.ended) isOver = true;
      else leave();
    },
    end,
    drop() {
      if (signal.aborted) end({ status: 'stopped' });
      else fail(new SabirError(UPSTREAM_DROPPED));
      leave();
    },
  };
}

function nextTick(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') setImmediate(resolve);
    else setTimeout(resolve, 0);
  });
}
