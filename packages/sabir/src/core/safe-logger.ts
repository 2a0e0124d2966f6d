import { SabirError } from './errors.ts';
import { hash128 } from './hash.ts';
import { quietly } from './quietly.ts';
import type { Logger } from './translator.ts';
import { withoutContent } from './without-content.ts';

/**
 * The id of a chat on a contract route. On a public route the id is all that opens the chat, so logs
 * have a hash in its place: the same for the same id, and no way back to it.
 */
const CHAT_ID = /chat_[0-9a-z]{32,64}/g;
/** Details nest no deeper: `error.cause` is the deepest. */
const MAX_DEPTH = 3;

/**
 * The logger that the rest of the code calls. Every public entry that takes a logger wraps it once.
 *
 * - A logger that throws or rejects changes nothing: its error is dropped.
 * - An error in the details loses its text, unless it is a `SabirError`, whose text is ours.
 * - Ids of minted chats become hashes, in ids and in paths.
 */
export function toSafeLogger(logger: Logger): Required<Logger>;
export function toSafeLogger(logger: Logger | undefined): Required<Logger> | undefined;
export function toSafeLogger(logger: Logger | undefined): Required<Logger> | undefined {
  if (!logger) return undefined;
  const at = (level: keyof Logger) => (message: string, details?: Record<string, unknown>) =>
    quietly(() =>
      logger[level]?.(
        hashChatIds(message),
        ...(details ? [toLoggable(details) as Record<string, unknown>] : []),
      ),
    );
  return { info: at('info'), warn: at('warn'), error: at('error') };
}

function toLoggable(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return hashChatIds(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof SabirError) {
    const { name, code, message, cause } = value;
    const why = cause === undefined ? {} : { cause: toLoggable(cause, depth + 1) };
    return { name, code, message: hashChatIds(message), ...why };
  }
  if (value instanceof Error) return toLoggable(withoutContent(value), depth);
  if (depth >= MAX_DEPTH || Array.isArray(value)) return value;
  const fields = Object.entries(value).map(([name, field]) => [name, toLoggable(field, depth + 1)]);
  return Object.fromEntries(fields);
}

/** The text with every id of a minted chat replaced by its hash. */
export function hashChatIds(text: string): string {
  return text.replace(CHAT_ID, (id) => `chat_#${hash128(id).slice(0, 8)}`);
}
