/**
 * Everything that can go wrong on our side, one constant each, so that a bundle pays only for the
 * errors it can meet: what HTTP says, whether trying again can help, what a person is shown and
 * what a developer can do. docs/ERRORS.md is made from them.
 */
export const RUNTIME_NOT_READY = {
  code: 'runtime-not-ready',
  status: 503,
  retryable: false,
  userMessage:
    'The runtime is not ready. Start it with run(), or pass a factory: () => createRuntime().',
  remedy: 'One runtime is one run.',
} as const;
export const RUN_FAILED = {
  code: 'run-failed',
  status: 502,
  retryable: true,
  userMessage: 'The agent could not finish its answer.',
  remedy: 'Send the message again.',
} as const;
export const RUN_ABORTED = {
  code: 'run-aborted',
  status: 502,
  retryable: true,
  userMessage: 'The run was aborted.',
  remedy: 'Send the message again.',
} as const;
export const TURN_LOST = {
  code: 'turn-lost',
  status: 502,
  retryable: true,
  userMessage: 'The connection to the agent was lost.',
  remedy: 'Send the message again.',
} as const;
export const NO_USER_MESSAGE = {
  code: 'no-user-message',
  status: 400,
  retryable: false,
  userMessage: 'There is no message to answer.',
  remedy: 'Send a message with role "user".',
} as const;
export const BAD_REQUEST = {
  code: 'bad-request',
  status: 400,
  retryable: false,
  userMessage: 'The request could not be understood.',
  remedy: 'POST JSON as useChat does: { id, messages: [{ id, role, parts }], trigger }.',
} as const;
export const BODY_TOO_LARGE = {
  code: 'body-too-large',
  status: 413,
  retryable: false,
  userMessage: 'The message is too large.',
  remedy: 'Send less, or raise maxBodyBytes.',
} as const;
export const METHOD_NOT_ALLOWED = {
  code: 'method-not-allowed',
  status: 405,
  retryable: false,
  userMessage: 'This address only takes messages.',
  remedy: 'Use POST.',
} as const;

export type ErrorKind =
  | typeof RUNTIME_NOT_READY
  | typeof RUN_FAILED
  | typeof RUN_ABORTED
  | typeof TURN_LOST
  | typeof NO_USER_MESSAGE
  | typeof BAD_REQUEST
  | typeof BODY_TOO_LARGE
  | typeof METHOD_NOT_ALLOWED;

export type ErrorCode = ErrorKind['code'];

/**
 * The one error class. `message` is for the operator, `userMessage` for the person in front
 * of the screen, `remedy` for the developer.
 */
export class SabirError extends Error {
  declare readonly code: ErrorCode;
  declare readonly status: number;
  declare readonly retryable: boolean;
  declare readonly userMessage: string;
  declare readonly remedy: string;

  constructor(kind: ErrorKind, detail?: string, options?: ErrorOptions) {
    super(detail ?? kind.userMessage, options);
    this.name = 'SabirError';
    Object.assign(this, kind);
  }
}

// Absolute and relative paths, Windows paths, file URLs, and positions like run.ts:12:3.
const FILE_PATH =
  /file:\S+|(?<![\w:/.])(?:[A-Z]:\\|[.~]*\/(?=[\w.@-]+\/))[^\s'"`)\],;]+|[\w./@-]+:\d+:\d+/gi;

/**
 * What a person is shown of somebody else's error: its own message, the first line of it, at most
 * 300 characters, never a stack or a file path.
 */
export function toErrorText(error: unknown): string {
  if (error instanceof SabirError) return error.userMessage;
  let text: string | undefined;
  try {
    const raw = typeof error === 'string' ? error : (error as Error | null | undefined)?.message;
    // Cut first: looking for paths in a long text without any takes time to the square.
    [text] = String(raw ?? '')
      .slice(0, 999)
      .split(/[\r\n]|\s+at\s\S+\s\(/, 1);
  } catch {
    // A message that throws when it is read, or cannot be a string, says nothing to anybody.
  }
  text = text?.replace(FILE_PATH, '…').trim() || RUN_FAILED.userMessage;
  return text.length > 300 ? `${text.slice(0, 299)}…` : text;
}
