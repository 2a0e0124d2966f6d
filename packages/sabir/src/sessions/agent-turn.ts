import type { Chunk } from '../core/chunks.ts';
import type { Loose } from '../core/loose.ts';
import type { UIMessage } from '../core/message.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import { startTimeout, type Timer } from '../core/timers.ts';
import { toHistory } from '../sources/agent-ops/history.ts';
import { runAgent } from '../sources/ai-sdk/agent-run.ts';
import type { Agent, SessionEvent } from '../turns/agent.ts';
import type { Attachment, Prompt } from '../turns/upstream.ts';
import { createV2Encoder } from '../wires/agent-ops/encode.ts';
import type { V2Event } from '../wires/agent-ops/events.ts';
import { EXPIRED_ANSWER, type RunnerCommand } from './protocol.ts';

export type PromptCommand = Extract<RunnerCommand, { type: 'prompt' }>;

type AgentTurnOptions = {
  sessionId: string;
  command: PromptCommand;
  agent: Agent;
  /** Resolves when the agent is ready. */
  ready: Promise<void>;
  /** Sends an event of the turn to the session. */
  say(event: object): void;
  emit(event: SessionEvent): void;
  errorText?: ((error: unknown) => string) | undefined;
};

export type AgentTurn = ReturnType<typeof startAgentTurn>;

/** One prompt of a session on its way through an agent: the agent's chunks leave as V2 events. */
export function startAgentTurn(options: AgentTurnOptions) {
  const { command, agent, ready, say, emit } = options;
  const { turnId, messageId: promptId, channelType, channelId } = command;
  const encoder = createV2Encoder({ turnId });
  let isOver = false;

  function* toEvents(chunks: Chunk[]): Generator<object> {
    for (const chunk of chunks) {
      for (const event of encoder.push(chunk)) {
        const said = toRunnerEvent(event, chunk);
        if (said) yield said;
      }
    }
  }

  function toRunnerEvent(event: V2Event, chunk: Chunk): object | undefined {
    switch (event.type) {
      case 'message.create':
        return { ...event, channelType, channelId };
      case 'agentStatus':
      case 'complete':
        return { ...event, messageId: promptId };
      case 'question':
        // A session takes milliseconds too: seconds would cut the question's time short.
        return { ...event, ...expiryOf(chunk) };
      case 'status':
        // The session itself says how a question ended.
        return undefined;
      default:
        return event;
    }
  }

  // People see at once that the agent has their prompt.
  for (const event of toEvents([{ type: 'start', messageId: turnId }])) say(event);
  const run = runAgent(
    agent,
    toPrompt(options),
    {
      event(event) {
        for (const said of toEvents(run.translator.push(event))) {
          // What was said before may have ended the turn, where the session is too far behind.
          if (isOver) return;
          say(said);
        }
      },
      close(outcome) {
        isOver = true;
        for (const said of toEvents(run.translator.end(outcome))) say(said);
      },
    },
    { ready: () => ready, emit },
  );
  const timers: Timer[] = [];
  const { promise: abandoned, resolve: abandon } = Promise.withResolvers<void>();
  let hasEnded = false;
  const ended = run.ended.then(() => {
    hasEnded = true;
    for (const timer of timers) timer.clear();
  });

  return {
    turnId,
    /** Resolves when the agent has ended; what it said last is said by then. */
    ended,
    get hasEnded() {
      return hasEnded;
    },
    /** Resolves when the agent was told to stop and has not, for twice as long as it may take. */
    abandoned,
    /** The turn ends at once; an agent that does not stop holds up only the next prompt. */
    abort(withinMs: number): void {
      run.stop();
      if (timers.length === 0 && !hasEnded) timers.push(startTimeout(2 * withinMs, abandon));
    },
    /** Ends the turn for the session, though the agent may go on. */
    end: (outcome: TurnOutcome) => run.end(outcome),
    answer(questionId: string, answer: string | boolean): void {
      if (answer === EXPIRED_ANSWER) run.expire?.(questionId);
      else run.answer({ type: 'answer', questionId, answer });
    },
  };
}

function expiryOf(chunk: Chunk): { expiresAt?: number } {
  const { expiresAt } = ((chunk as Loose).data ?? {}) as { expiresAt?: unknown };
  return typeof expiresAt === 'number' ? { expiresAt } : {};
}

/** In a session the channel is the chat, and the turn's id is that of its message. */
function toPrompt({ sessionId, command, errorText }: AgentTurnOptions): Prompt {
  const { turnId, messageId: promptId, channelType, channelId } = command;
  const { content: text, model, author, traceparent } = command;
  const attachments = (command.attachments ?? []).map(toAttachment);
  const files = attachments.map((file) => ({ type: 'file' as const, ...file }));
  const words = text === '' ? [] : [{ type: 'text' as const, text }];
  const asked: UIMessage = { id: promptId, role: 'user', parts: [...words, ...files] };
  return {
    sessionId,
    chatId: channelId,
    chatKey: JSON.stringify([sessionId, channelType, channelId]),
    turnId,
    messageId: turnId,
    user: author ?? { id: 'unknown' },
    text,
    attachments,
    messages: [...(command.messages ? toHistory(command.messages, {}) : []), asked],
    body: model === undefined ? {} : { model },
    channel: { channelType, channelId },
    ...(errorText && { errorText }),
    ...(traceparent !== undefined && { traceparent }),
  };
}

function toAttachment({ mime, url, filename }: NonNullable<PromptCommand['attachments']>[number]) {
  const attachment: Attachment = { url, mediaType: mime };
  return filename === undefined ? attachment : { ...attachment, filename };
}
