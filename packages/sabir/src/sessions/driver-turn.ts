import { toShownText } from '../core/errors.ts';
import { createId } from '../core/id.ts';
import { startTimeout, type Timer } from '../core/timers.ts';
import { toHistory } from '../sources/agent-ops/history.ts';
import type { AgentDriver, DriverAnswer, DriverPrompt, DriverQuestion } from '../turns/driver.ts';
import type { Attachment } from '../turns/upstream.ts';
import { EXPIRED_ANSWER, type Finalize, type RunnerCommand } from './protocol.ts';
import { statusOf, toAgentStatus, toV2 } from './to-v2.ts';

export type PromptCommand = Extract<RunnerCommand, { type: 'prompt' }>;

type DriverTurnOptions = {
  sessionId: string;
  command: PromptCommand;
  driver: AgentDriver;
  /** Resolves when the driver is ready. */
  ready: Promise<void>;
  say(event: object): void;
  errorText?: ((error: unknown) => string) | undefined;
};

type End = Omit<Finalize, 'type'>;

export type DriverTurn = ReturnType<typeof startDriverTurn>;

/** One prompt on its way through a driver: what it does is said, and how it ended, once. */
export function startDriverTurn(options: DriverTurnOptions) {
  const { sessionId, command, driver, ready, say, errorText } = options;
  const {
    turnId,
    messageId: promptId,
    channelType,
    channelId,
    content,
    model,
    author,
    traceparent,
  } = command;
  const stopping = new AbortController();
  const { signal } = stopping;
  const answers = new Map<string, (answer: DriverAnswer) => void>();
  let isOver = false;
  let shown = '';

  const prompt: DriverPrompt = {
    sessionId,
    channel: { channelType, channelId },
    turnId,
    promptId,
    content,
    attachments: (command.attachments ?? []).map(toAttachment),
    ...(model !== undefined && { model }),
    ...(author && { author }),
    ...(traceparent !== undefined && { traceparent }),
    messages: command.messages ? toHistory(command.messages, {}) : [],
    signal,
    ask,
  };

  function ask(question: DriverQuestion): Promise<DriverAnswer> {
    const { text, options: choices, callId, questionId = createId() } = question;
    const { expiresInMs, answerBy } = question;
    if (signal.aborted) return Promise.reject(signal.reason);
    const { promise, resolve, reject } = Promise.withResolvers<DriverAnswer>();
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    answers.set(questionId, (answer) => {
      signal.removeEventListener('abort', onAbort);
      resolve(answer);
    });
    tell({
      type: 'question',
      turnId,
      questionId,
      text,
      ...(choices && { options: choices }),
      ...(callId !== undefined && { callId }),
      ...(answerBy !== undefined && { answerBy }),
      ...(expiresInMs !== undefined && { expiresAt: Date.now() + expiresInMs }),
    });
    return promise;
  }

  /** After the end nothing is said any more, whatever the driver still does. */
  function tell(event: object): void {
    if (!isOver) say(event);
  }

  function showStatus({ status, detail }: { status: string; detail?: string }): void {
    const key = `${status} ${detail ?? ''}`;
    if (key === shown) return;
    shown = key;
    tell(toAgentStatus(promptId, status as 'idle', detail));
  }

  function end(given: End): void {
    if (isOver) return;
    // First: whoever is told may have nothing more of it, and say so by ending it.
    isOver = true;
    say({ type: 'message.finalize', turnId, ...given });
    say({ type: 'complete', messageId: promptId });
  }

  async function run(): Promise<void> {
    try {
      await ready;
      for await (const event of driver.prompt(prompt)) {
        const status = event.type === 'status' ? undefined : statusOf(event);
        if (status) showStatus(status);
        tell(toV2(event, { turnId, promptId }));
      }
      end({ reason: signal.aborted ? 'canceled' : 'end_turn' });
    } catch (error) {
      if (signal.aborted) end({ reason: 'canceled' });
      else {
        const { code } = (error ?? {}) as { code?: unknown };
        const words = { error: toShownText(error, errorText) };
        end({ reason: 'error', ...words, ...(typeof code === 'string' && { code }) });
      }
    }
  }

  tell({ type: 'message.create', turnId, channelType, channelId });
  showStatus({ status: 'thinking' });
  let isDone = false;
  const done = run().finally(() => {
    isDone = true;
    for (const timer of timers) timer.clear();
  });
  const timers: Timer[] = [];
  const { promise: abandoned, resolve: abandon } = Promise.withResolvers<void>();

  return {
    turnId,
    /** Resolves when the driver has ended; what it said last is said by then. */
    done,
    get isDone() {
      return isDone;
    },
    /** Resolves when the driver was told to stop and has not, for twice as long as it may take. */
    abandoned,
    abort(withinMs: number): void {
      if (signal.aborted) return;
      stopping.abort(new DOMException('The turn was stopped.', 'AbortError'));
      // An agent that does not stop holds up the next prompt, but nobody who waits for this one.
      timers.push(startTimeout(withinMs, () => end({ reason: 'canceled' })));
      timers.push(startTimeout(2 * withinMs, abandon));
    },
    /** Ends it for everybody, though the driver may go on. */
    end,
    answer(questionId: string, answer: string | boolean): void {
      const resolve = answers.get(questionId);
      answers.delete(questionId);
      resolve?.(answer === EXPIRED_ANSWER ? { status: 'expired' } : { status: 'answered', answer });
    },
  };
}

function toAttachment({ mime, url, filename }: NonNullable<PromptCommand['attachments']>[number]) {
  const attachment: Attachment = { url, mediaType: mime };
  return filename === undefined ? attachment : { ...attachment, filename };
}
