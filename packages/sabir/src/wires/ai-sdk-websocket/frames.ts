/** What AI SDK 7's `WebSocketChatTransport` sends and expects. docs/PROTOCOL.md says what it does with it. */
import { BAD_REQUEST, SabirError } from '../../core/errors.ts';
import { createJsonMeter } from '../../core/json-limits.ts';

type Headers = Readonly<Record<string, string>>;
type Fields = Readonly<Record<string, unknown>>;

/** From the client. `id` is the chat's; `requestId` names the request in all frames about it. */
export type ClientFrame =
  | { type: 'send'; requestId: string; id: string; headers: Headers; body: Fields; message: Fields }
  | { type: 'resume'; requestId: string; id: string; headers: Headers }
  | { type: 'abort'; requestId: string };

/** To the client. The chunks of a request are numbered from 0, without a gap. */
export type ServerFrame =
  | { type: 'start' | 'end' | 'no-active'; requestId: string }
  // The client reads `errorText`; `code` is for other clients.
  | { type: 'error'; requestId: string; errorText: string; code: string };

const MAX_ID_LENGTH = 200;
const MAX_CHAT_ID_LENGTH = 1_000;
const MAX_HEADER_LENGTH = 8_000;

/**
 * Reads one frame. `about` is the `requestId` of a frame that is refused, where it has a usable one; the client then
 * fails that request alone.
 */
export function parseClientFrame(
  text: string,
): { frame: ClientFrame } | { problem: SabirError; about: string | undefined } {
  let about: string | undefined;
  try {
    if (createJsonMeter().push(text)) throw refused('It is nested too deep or has too many fields');
    const fields = asObject(JSON.parse(text), 'It');
    about = idOf(fields.requestId);
    if (about === undefined)
      throw refused(`requestId is not a string of 1 to ${MAX_ID_LENGTH} characters`);
    return { frame: toFrame(fields, about) };
  } catch (error) {
    return { problem: error instanceof SabirError ? error : refused('It is not JSON'), about };
  }
}

function toFrame({ type, ...fields }: Fields, requestId: string): ClientFrame {
  if (type === 'abort') return { type, requestId };
  if (type !== 'send' && type !== 'resume') throw refused('type is not send, resume or abort');
  const { id, messages, trigger, messageId } = fields;
  if (typeof id !== 'string' || id === '' || id.length > MAX_CHAT_ID_LENGTH || !id.isWellFormed()) {
    throw refused(`id is not the id of a chat, of 1 to ${MAX_CHAT_ID_LENGTH} characters`);
  }
  const headers = asObject(fields.headers ?? {}, 'headers');
  if (!areHeaders(headers)) throw refused('headers has a value that no header can have');
  if (type === 'send') {
    const body = asObject(fields.body ?? {}, 'body');
    return { type, requestId, id, headers, body, message: { id, messages, trigger, messageId } };
  }
  // Replays merge deltas, so a number of an earlier request names no place in the turn.
  if (fields.lastSequence !== undefined && fields.lastSequence !== null) {
    throw refused('lastSequence is set: resume without it, to get the whole message');
  }
  return { type, requestId, id, headers };
}

function idOf(value: unknown): string | undefined {
  const isFit = typeof value === 'string' && value !== '' && value.length <= MAX_ID_LENGTH;
  return isFit ? value : undefined;
}

const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

function areHeaders(fields: Fields): fields is Headers {
  return Object.values(fields).every(
    (value) =>
      typeof value === 'string' && value.length <= MAX_HEADER_LENGTH && HEADER_VALUE.test(value),
  );
}

function asObject(value: unknown, where: string): Fields {
  if (typeof value === 'object' && value && !Array.isArray(value)) return value as Fields;
  throw refused(`${where} is not an object`);
}

function refused(why: string): SabirError {
  return new SabirError(BAD_REQUEST, `The frame was refused. ${why}.`);
}
