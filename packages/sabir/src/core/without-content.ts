type Described = { name: string; code?: string; stack?: string };

/**
 * What may be logged of an error thrown by code that has seen messages: its kind, and where it was
 * thrown. Its text and its other fields may quote them: a database tells the row that it refused, a
 * store's client the command that failed.
 */
export function withoutContent(error: unknown): Described {
  try {
    return describe(error);
  } catch {
    // A getter or a proxy of the error threw.
    return { name: 'unreadable' };
  }
}

function describe(error: unknown): Described {
  if (!(error instanceof Error)) return { name: typeof error };
  const { code } = error as { code?: unknown };
  const name = String(error.name);
  const stack = String(error.stack ?? '');
  const message = String(error.message ?? '');
  // The frames follow the text, as it was when the error was made: it may have been changed since.
  const at = stack.indexOf(message) + message.length;
  const rest = stack.includes(message) ? stack.slice(at) : '';
  const first = rest.search(/^ +at /m);
  const frames = first < 0 ? '' : rest.slice(first);
  return {
    name,
    ...(typeof code === 'string' && /^[\w.-]{1,40}$/.test(code) && { code }),
    ...(frames && { stack: frames }),
  };
}

/** What may be logged of an error thrown by code that has seen no message and no token: its text too. */
export function withText(error: unknown): Described & { message?: string } {
  const described = withoutContent(error);
  try {
    return error instanceof Error ? { ...described, message: String(error.message) } : described;
  } catch {
    return described;
  }
}
