/**
 * Everything that can go wrong on our side, one constant each, so that a bundle pays only for the
 * errors it can meet: what HTTP says, whether trying again can help, what a person is shown and
 * what a developer can do. docs/ERRORS.md is made from them.
 */
const define = <Code extends string>(
  code: Code,
  status: number,
  retryable: boolean,
  userMessage: string,
  remedy: string,
) => ({ code, status, retryable, userMessage, remedy });

export const RUNTIME_NOT_READY = /* @__PURE__ */ define(
  'runtime-not-ready',
  503,
  false,
  'The runtime is not ready. Start it with run(), or pass a factory: () => createRuntime().',
  'One runtime is one run.',
);
export const RUN_FAILED = /* @__PURE__ */ define(
  'run-failed',
  502,
  true,
  'The agent could not finish its answer.',
  'Send the message again.',
);
export const RUN_ABORTED = /* @__PURE__ */ define(
  'run-aborted',
  502,
  true,
  'The run was aborted before it finished.',
  'Send the message again.',
);
export const TURN_LOST = /* @__PURE__ */ define(
  'turn-lost',
  502,
  true,
  'The connection to the agent was lost.',
  'Send the message again.',
);
export const NO_USER_MESSAGE = /* @__PURE__ */ define(
  'no-user-message',
  400,
  false,
  'There is no message to answer.',
  'Send a message with role "user".',
);
export const BAD_REQUEST = /* @__PURE__ */ define(
  'bad-request',
  400,
  false,
  'The request could not be understood.',
  'POST JSON as useChat does: { id, messages: [{ id, role, parts }], trigger }.',
);
export const BODY_TOO_LARGE = /* @__PURE__ */ define(
  'body-too-large',
  413,
  false,
  'The message is too large.',
  'Send less, or raise maxBodyBytes.',
);
export const METHOD_NOT_ALLOWED = /* @__PURE__ */ define(
  'method-not-allowed',
  405,
  false,
  'This address only takes messages.',
  'Use POST.',
);

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
