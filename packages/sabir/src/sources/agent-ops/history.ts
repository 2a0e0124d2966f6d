import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import type { Loose } from '../../core/loose.ts';
import type { UIMessage, UIMessagePart } from '../../core/message.ts';
import type { Channel } from '../../core/translator.ts';
import type { SessionMessage } from './events.ts';
import { createAgentOpsTranslator } from './translate.ts';

/** What the server says of itself beside the messages. */
type Busy = {
  runnerBusy?: unknown;
  promptsQueued?: unknown;
  /** Of our own server: the turn that runs, null if none does. */
  turn?: unknown;
};

/**
 * A session's messages as a chat shows them, without the answer that is being written. Those that
 * are no part of a chat, those of another channel, and what cannot be read are left out.
 */
export function toHistory(
  messages: readonly unknown[],
  busy: Busy,
  channel?: Channel,
): UIMessage[] {
  const known = messages.filter(isMessage);
  const running = findRunning(known, busy);
  return known.flatMap((message) =>
    message === running || isElsewhere(message, channel) ? [] : toUIMessages(message),
  );
}

function isElsewhere({ channelType, channelId }: SessionMessage, channel?: Channel): boolean {
  if (!channel) return false;
  const isType = channelType == null || channelType === channel.channelType;
  return !isType || (channelId != null && channelId !== channel.channelId);
}

function isMessage(value: unknown): value is SessionMessage {
  const { id, role } = (value ?? {}) as Loose;
  return typeof id === 'string' && id !== '' && typeof role === 'string';
}

/**
 * The answer of the turn that runs, where the server says which that is. Else it is guessed:
 * the last answer, if it has not ended while the runner works. One that was aborted has not ended
 * either: behind it stands one user message more than there are prompts in the queue.
 */
function findRunning(messages: SessionMessage[], busy: Busy): SessionMessage | undefined {
  if (busy.turn !== undefined) {
    const { turnId } = Object(busy.turn) as Loose;
    return messages.find(({ id, role }) => role === 'assistant' && id === turnId);
  }
  if (busy.runnerBusy !== true) return undefined;
  const at = messages.findLastIndex(({ role }) => role === 'assistant');
  const last = messages[at];
  if (!last || hasEnded(last)) return undefined;
  const asked = messages.slice(at).filter(({ role }) => role === 'user').length;
  const isNextUnbegun = typeof busy.promptsQueued === 'number' && asked > busy.promptsQueued;
  return isNextUnbegun ? undefined : last;
}

function hasEnded({ parts }: SessionMessage): boolean {
  return Array.isArray(parts) && parts.some((part) => part?.type === 'finish');
}

function toUIMessages(message: SessionMessage): UIMessage[] {
  const { id, role } = message;
  if (role === 'assistant') return toAnswers(message);
  if (role !== 'user' && role !== 'system') return [];
  const parts = [...textOf(message), ...filesOf(message)];
  return parts.length > 0 ? [{ id, role, parts }] : [];
}

function toAnswers(message: SessionMessage): UIMessage[] {
  const { id, content, parts } = message;
  const isTurn = Array.isArray(parts);
  // A turn that has only begun is one whose answer is still to come.
  if (isTurn ? parts.length === 0 && !content : !content) return [];
  const said =
    isTurn && parts.length > 0 ? parts : [{ type: 'text' as const, text: content ?? '' }];
  const hasFinish = hasEnded({ id, parts: said });
  const translator = createAgentOpsTranslator({ turnId: id, dialect: 'snapshot' });
  const chunks: Chunk[] = [
    ...translator.push({ type: 'message.updated', data: { ...message, parts: said } }),
    // Only turns say how they ended: other messages are there, and that is all.
    ...translator.end(isTurn && !hasFinish ? { status: 'stopped', reason: 'aborted' } : undefined),
  ];
  const answer = foldChunks(chunks);
  const failure = chunks.find((chunk) => chunk.type === 'error');
  if (!failure) return [answer];
  // Why it failed is told once, to whoever is there; whoever comes back should know it too.
  const metadata = { ...(answer.metadata as object), reason: failure.errorText };
  return [{ ...answer, metadata }];
}

function textOf({ content }: SessionMessage): UIMessagePart[] {
  return typeof content === 'string' && content !== '' ? [{ type: 'text', text: content }] : [];
}

/** Servers keep the files of a message as its parts: the bytes, or where they are. */
function filesOf({ parts }: SessionMessage): UIMessagePart[] {
  const list: unknown[] = Array.isArray(parts) ? parts : [];
  return list.flatMap((part): UIMessagePart[] => {
    const { data, url, mimeType, mime, mediaType = mimeType ?? mime, filename } = Object(part);
    if (typeof mediaType !== 'string') return [];
    const address = typeof url === 'string' ? url : undefined;
    const bytes = typeof data === 'string' ? `data:${mediaType};base64,${data}` : undefined;
    const place = address ?? bytes;
    if (place === undefined) return [];
    const name = typeof filename === 'string' ? { filename } : undefined;
    return [{ type: 'file', mediaType, url: place, ...name }];
  });
}
