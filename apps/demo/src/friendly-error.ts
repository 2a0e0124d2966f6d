import type { ChatRequestError } from 'sabir/client';

export type FriendlyError = { title: string; text: string };

const DEFAULT_TITLE = 'The answer could not be finished';

/**
 * Puts whatever the hook caught into words that help the person in front of the page, who may be
 * able to choose another place for the flow, or not.
 */
export function toFriendlyError(error: Error, canMove: boolean): FriendlyError {
  if (error instanceof TypeError && /fetch|network|load failed/i.test(error.message)) {
    return {
      title: 'The server cannot be reached',
      text: `Check your connection and that the server is running, then try again.${canMove ? ' Or run the flow in this tab.' : ''}`,
    };
  }
  if (isRequestError(error) && error.status === 404) {
    return {
      title: 'The gateway is off',
      text: `This server was started without it. ${canMove ? 'Choose Server or This tab and try again, or start' : 'Start'} it with ENABLE_AI_SDK_ADAPTER=true.`,
    };
  }
  const refusal = toRefusal(error);
  if (refusal) return { title: 'The server did not accept the message', text: refusal };
  // A page of HTML or a stack is no help to anybody.
  const isReadable = error.message.length <= 300 && !/[<>{}]|\n\s+at /.test(error.message);
  const text = isReadable && error.message ? error.message : 'Something went wrong. Try again.';
  return { title: DEFAULT_TITLE, text };
}

/** The server's own words, for what it did not take. */
function isRequestError(error: Error): error is ChatRequestError {
  return 'status' in error && Number(error.status) < 500;
}

/** Sabir's routes refuse a request with `{ code, message, remedy }`. */
function toRefusal(error: Error): string | undefined {
  const isRead = isRequestError(error);
  if (!isRead && !error.message.startsWith('{')) return;
  try {
    const { message, remedy }: { message?: unknown; remedy?: unknown } = isRead
      ? error
      : JSON.parse(error.message);
    return [message, remedy].filter((part) => typeof part === 'string').join(' ') || undefined;
  } catch {
    // Not ours: treated like any other text.
    return;
  }
}
