/**
 * What may be logged of an error of somebody who has seen messages: its kind, and where it was
 * thrown. Its text and its other fields may quote them: a database tells the row that it refused, a
 * store's client the command that failed.
 */
export function withoutContent(error: unknown): { name: string; code?: string; stack?: string } {
  if (!(error instanceof Error)) return { name: typeof error };
  const { name, stack = '' } = error;
  const { code } = error as { code?: unknown };
  // The frames follow the text, as it was when the error was made.
  const at = stack.indexOf(error.message) + error.message.length;
  const frames = stack.includes(error.message) ? stack.slice(at).replace(/^\n/, '') : '';
  return {
    name,
    ...(typeof code === 'string' && /^[\w.-]{1,40}$/.test(code) && { code }),
    ...(frames && { stack: frames }),
  };
}

/** What may be logged of an error of somebody who has seen no message and no token: its text too. */
export function withText(error: unknown): ReturnType<typeof withoutContent> & { message?: string } {
  return { ...withoutContent(error), ...(error instanceof Error && { message: error.message }) };
}
