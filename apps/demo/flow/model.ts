/** What a model is to the flow: the scripted one and a real provider both keep this contract. */
import type { Tool } from './tools.ts';

export type AgentName = 'researcher' | 'writer' | 'reviewer';

export type ModelEvent =
  | { type: 'thinking'; text: string }
  | { type: 'text'; text: string }
  | { type: 'tool-call'; id: string; name: string; input: unknown }
  | { type: 'usage'; inputTokens: number; outputTokens: number; costUsd?: number };

export type ToolCall = { id: string; name: string; input: unknown };

export type ModelMessage =
  | { role: 'user'; text: string }
  | { role: 'assistant'; text: string; toolCalls?: ToolCall[] }
  | { role: 'tool'; toolCallId: string; text: string };

/** What the person asked, as it travels through the flow. */
export type PersonRequest = {
  message: string;
  /** Stays the same when an answer is regenerated, so a model can tell a second try from a first. */
  messageId: string;
  history: Array<{ role: 'user' | 'assistant'; text: string }>;
};

export type ModelRequest = {
  agent: AgentName;
  person: PersonRequest;
  system: string;
  messages: ModelMessage[];
  tools: readonly Tool[];
  signal: AbortSignal;
};

/**
 * One call of `stream` is one turn of the model: it MAY think, then speak, then call tools.
 * It MUST stop when the signal aborts, and MUST throw an error whose message a person can read.
 */
export interface Model {
  readonly name: string;
  stream(request: ModelRequest): AsyncIterable<ModelEvent>;
}
