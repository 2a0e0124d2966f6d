/**
 * What a gateway and a session server elsewhere send each other: prompts one way, the chunks of their turns with the
 * session's own numbers the other way, and what happens in the queue beside them.
 */
import type { Trigger } from '../../core/chat-request.ts';
import type { Chunk } from '../../core/chunks.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type { UIMessage } from '../../core/message.ts';
import { isRole, type Role } from '../../core/roles.ts';
import type { Channel } from '../../core/translator.ts';
import type { Steer } from '../../turns/log.ts';
import type { Attachment } from '../../turns/upstream.ts';
import { readTyped } from '../read-typed.ts';

export const LINK_PROTOCOL = { name: 'sabir-session', version: 1 } as const;

/** From a gateway to a session server. */
export type LinkRequest =
  /**
   * Asks, and follows the turn. The same `turnId` sent again is not asked again: that is how a gateway goes on after a
   * drop, and with a turn that another gateway began.
   */
  | {
      type: 'prompt';
      turnId: string;
      messageId: string;
      channel: Channel;
      text: string;
      attachments: Attachment[];
      body: Record<string, unknown>;
      traceparent?: string;
      trigger?: Trigger;
      replaces?: string;
      userMessageId?: string;
      /** The number of the last chunk that the gateway has. */
      after: number;
    }
  | { type: 'stop'; turnId: string }
  | {
      type: 'answer';
      turnId: string;
      questionId: string;
      answer: unknown;
      /** The person who answers, and their role as the gateway knows it. */
      by?: { userId: string; role: Role };
    }
  /** A message for the running turn. The turn's chunks say what came of it. */
  | { type: 'steer'; turnId: string; message: Steer }
  /** The gateway needs no more of this turn. */
  | { type: 'release'; turnId: string }
  | { type: 'history'; id: number; channel: Channel }
  | { type: 'ping' };

/** From a session server to a gateway. */
export type LinkEvent =
  | {
      type: 'init';
      protocol: typeof LINK_PROTOCOL;
      /** A longer message closes the socket with 1009. */
      maxMessageBytes: number;
      channels: Channel[];
    }
  /** The session has taken the prompt, now or before. */
  | { type: 'accepted'; turnId: string }
  | { type: 'refused'; turnId: string; code: string; error: string }
  /** How many prompts have to end before this one, and itself; 0 when it waits no more. */
  | { type: 'queue'; turnId: string; position: number }
  /** The prompt was taken out of the queue. */
  | { type: 'withdrawn'; turnId: string }
  /** Confirms a `stop`: the turn is being stopped, was withdrawn, has ended, or is not known. */
  | { type: 'stopped'; turnId: string }
  /** `seq` is the number of the last of these chunks in the session's log. */
  | { type: 'chunks'; turnId: string; seq: number; chunks: Chunk[] }
  /** The session's log has no more of this turn. */
  | { type: 'gone'; turnId: string }
  | { type: 'history'; id: number; messages: UIMessage[] }
  | { type: 'pong' };

const isString = (value: unknown): value is string => typeof value === 'string';
const OPTIONAL_TEXTS = ['traceparent', 'trigger', 'replaces', 'userMessageId'];
const isName = (value: unknown) => isString(value) && value !== '' && value.length <= 512;
const isPlace = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
const isChannel = (value: unknown) =>
  isObject(value) && isName(value.channelType) && isName(value.channelId);
const isBy = (value: unknown) =>
  value === undefined || (isObject(value) && isName(value.userId) && isRole(value.role));
const isFile = (value: unknown) =>
  isObject(value) && isString(value.url) && isString(value.mediaType);

const REQUESTS: Record<LinkRequest['type'], (request: Loose) => boolean> = {
  prompt: ({ turnId, messageId, channel, text, attachments, body, after, ...optional }) =>
    isName(turnId) &&
    isName(messageId) &&
    isChannel(channel) &&
    isString(text) &&
    Array.isArray(attachments) &&
    attachments.every(isFile) &&
    isObject(body) &&
    isPlace(after) &&
    OPTIONAL_TEXTS.every((name) => optional[name] === undefined || isString(optional[name])),
  stop: ({ turnId }) => isName(turnId),
  answer: ({ turnId, questionId, by }) => isName(turnId) && isName(questionId) && isBy(by),
  steer: ({ turnId, message }) =>
    isName(turnId) &&
    isObject(message) &&
    isName(message.id) &&
    isString(message.text) &&
    Array.isArray(message.attachments) &&
    message.attachments.every(isFile) &&
    isBy(message.by),
  release: ({ turnId }) => isName(turnId),
  history: ({ id, channel }) => isPlace(id) && isChannel(channel),
  ping: () => true,
};

const EVENTS: Record<LinkEvent['type'], (event: Loose) => boolean> = {
  init: ({ protocol, channels }) =>
    isObject(protocol) &&
    protocol.name === LINK_PROTOCOL.name &&
    protocol.version === LINK_PROTOCOL.version &&
    Array.isArray(channels) &&
    channels.every((one) => isObject(one) && isString(one.channelType) && isString(one.channelId)),
  accepted: ({ turnId }) => isString(turnId),
  refused: ({ turnId, code, error }) => [turnId, code, error].every(isString),
  queue: ({ turnId, position }) => isString(turnId) && isPlace(position),
  withdrawn: ({ turnId }) => isString(turnId),
  stopped: ({ turnId }) => isString(turnId),
  chunks: ({ turnId, seq, chunks }) => isString(turnId) && isPlace(seq) && Array.isArray(chunks),
  gone: ({ turnId }) => isString(turnId),
  history: ({ id, messages }) => isPlace(id) && Array.isArray(messages),
  pong: () => true,
};

/** Undefined where it is no request of a gateway. */
export function readLinkRequest(value: unknown): LinkRequest | undefined {
  return readTyped<LinkRequest>(REQUESTS, value);
}

/** Undefined where it is no event of a session server. */
export function readLinkEvent(value: unknown): LinkEvent | undefined {
  return readTyped<LinkEvent>(EVENTS, value);
}
