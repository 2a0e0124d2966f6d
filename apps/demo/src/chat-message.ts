import type { MessageMetadata, UIMessage } from 'sabir';
import type { AgentOpsDataTypes } from 'sabir/agent-ops';
import type { OpenHarnessDataTypes } from 'sabir/open-harness';
import type { OpenAIAgentsDataTypes } from 'sabir/openai-agents';

export type Question = OpenAIAgentsDataTypes['question'] | AgentOpsDataTypes['question'];

type DataTypes = OpenHarnessDataTypes &
  Omit<OpenAIAgentsDataTypes, 'question'> &
  Omit<AgentOpsDataTypes, 'question'> & { question: Question };

/** The message of this chat: the AI SDK's, with Sabir's metadata and the data parts of all agents. */
export type ChatMessage = UIMessage<MessageMetadata, DataTypes>;
export type ChatPart = ChatMessage['parts'][number];
export type Outcome = NonNullable<NonNullable<ChatMessage['metadata']>['outcome']>;

export function toText({ parts }: Pick<ChatMessage, 'parts'>): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

/** Nobody has said yet how its answer ended. */
export function isOpenEnded(message: ChatMessage | undefined): boolean {
  return message?.role === 'user' || message?.metadata?.outcome === 'lost';
}

/** The question that the answer waits with, if it does. */
export function openQuestion(message: ChatMessage | undefined): Question | undefined {
  const parts = message?.parts ?? [];
  return parts
    .flatMap((part) => (part.type === 'data-question' ? [part.data] : []))
    .findLast(({ status }) => status === 'open');
}

function withOutcome(message: ChatMessage, outcome: Outcome): ChatMessage {
  return { ...message, metadata: { ...message.metadata, outcome } };
}

/**
 * A message that was cut off has no outcome: nobody was left to send one. Whoever notices
 * writes down what happened, so that it is shown the same way ever after.
 */
export function settleLast(messages: ChatMessage[], outcome: Outcome): ChatMessage[] {
  const last = messages.at(-1);
  if (last?.role !== 'assistant' || last.metadata?.outcome) return messages;
  return [...messages.slice(0, -1), withOutcome(last, outcome)];
}
