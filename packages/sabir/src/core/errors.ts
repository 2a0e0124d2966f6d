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
/** By itself for pages, which have no use for the rest. */
export const TURN_LOST_MESSAGE = 'The connection to the agent was lost.';
export const TURN_LOST = {
  code: 'turn-lost',
  status: 502,
  retryable: true,
  userMessage: TURN_LOST_MESSAGE,
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
  remedy: 'Send less, or raise the limit.',
} as const;
export const METHOD_NOT_ALLOWED = {
  code: 'method-not-allowed',
  status: 405,
  retryable: false,
  userMessage: 'This address only takes messages.',
  remedy: 'See the allow header.',
} as const;
export const UPSTREAM_UNREACHABLE = {
  code: 'upstream-unreachable',
  status: 502,
  retryable: true,
  userMessage: 'Connection failed',
  remedy:
    'The agent behind the session could not be reached: see the log for why, then send again.',
} as const;
export const UPSTREAM_DROPPED = {
  code: 'upstream-dropped',
  status: 502,
  retryable: true,
  userMessage: 'Stream interrupted',
  remedy: 'The connection to the agent dropped. Send the message again.',
} as const;
export const UPSTREAM_SILENT = {
  code: 'upstream-silent',
  status: 504,
  retryable: true,
  userMessage: 'The agent has gone silent, so its turn was stopped.',
  remedy: 'Send the message again, or raise timing.idleMs.',
} as const;
export const TOOL_SILENT = {
  code: 'tool-silent',
  status: 504,
  retryable: true,
  userMessage: 'A tool took too long, so the turn was stopped.',
  remedy: 'Send the message again, or raise timing.toolLimitMs.',
} as const;
export const UPSTREAM_FLOOD = {
  code: 'upstream-flood',
  status: 502,
  retryable: true,
  userMessage: 'The agent sent more than could be stored in time.',
  remedy: 'Raise limits.queueBytes, or use a faster log.',
} as const;
export const TRANSLATOR_FAILED = {
  code: 'translator-failed',
  status: 502,
  retryable: false,
  userMessage: 'The agent said something that could not be understood.',
  remedy:
    "The translator of the agent's source threw: the log says where. Fix it, then send again.",
} as const;
export const TURN_TOO_LARGE = {
  code: 'turn-too-large',
  status: 502,
  retryable: false,
  userMessage: 'The answer grew too large and was cut off.',
  remedy: 'Raise maxTurnBytes of the log, or have the agent say less.',
} as const;
export const TURN_FENCED = {
  code: 'turn-fenced',
  status: 409,
  retryable: false,
  userMessage: 'Another server has taken over this turn.',
  remedy: 'Stop writing: the turn was ended because its lease ran out.',
} as const;
export const SHUTTING_DOWN = {
  code: 'shutting-down',
  status: 503,
  retryable: true,
  userMessage: 'The server is restarting.',
  remedy: 'Try again in a moment.',
} as const;
export const NOT_SIGNED_IN = {
  code: 'not-signed-in',
  status: 401,
  retryable: false,
  userMessage: 'You are not signed in.',
  remedy: 'Send Authorization: Bearer with a valid token.',
} as const;
export const KEYS_UNAVAILABLE = {
  code: 'keys-unavailable',
  status: 503,
  retryable: true,
  userMessage: 'Sign-ins cannot be checked at the moment. Try again in a while.',
  remedy: 'The key set (jwks) of jwtAuth could not be fetched: the log says why.',
} as const;
export const ORIGIN_REFUSED = {
  code: 'origin-refused',
  status: 403,
  retryable: false,
  userMessage: 'This page may not do that.',
  remedy: 'Add its origin to cors.origins, or send Authorization: Bearer with a valid token.',
} as const;
/** A 401, as for any request without a sign-in: a page that tries a rebound name learns nothing more. */
export const HOST_REFUSED = {
  code: 'host-refused',
  status: 401,
  retryable: false,
  userMessage: 'This server answers on its own machine only.',
  remedy:
    'Use http://localhost or http://127.0.0.1, or start the server with --host and a way to sign in.',
} as const;
export const SIGN_IN_EXPIRED = {
  code: 'sign-in-expired',
  status: 401,
  retryable: true,
  userMessage: 'Your sign-in has expired.',
  remedy: 'Resume with a fresh token.',
} as const;
export const NOT_FOUND = {
  code: 'not-found',
  status: 404,
  retryable: false,
  userMessage: 'There is nothing here.',
  remedy: 'Check the address, the session id, and what this user may do in it.',
} as const;
export const HOOK_TIMEOUT = {
  code: 'hook-timeout',
  status: 503,
  retryable: true,
  userMessage: 'The server took too long to check this request.',
  remedy:
    'A hook (authenticate, access, enabled, admit or routes.metrics) exceeded timing.hookMs: the log says which.',
} as const;
export const VIEWER_TOO_SLOW = {
  code: 'viewer-too-slow',
  status: 503,
  retryable: true,
  userMessage: 'The connection is too slow to follow the answer.',
  remedy: 'Resume: what was missed is sent again.',
} as const;
export const LOG_FAILED = {
  code: 'log-failed',
  status: 503,
  retryable: true,
  userMessage: 'The answer could not be stored.',
  remedy: 'Check the store behind the turn log, then send again.',
} as const;
export const LOG_UNAVAILABLE = {
  code: 'log-unavailable',
  status: 503,
  retryable: true,
  userMessage: 'The server cannot reach its store at the moment. Try again in a while.',
  remedy: 'Check that the store behind the turn log runs and can be reached, then send again.',
} as const;
export const ATTACHMENTS_TOO_LARGE = {
  code: 'attachments-too-large',
  status: 413,
  retryable: false,
  userMessage: 'The attached files are too large.',
  remedy: 'Attach less, or raise limits.attachmentBytes.',
} as const;
export const QUESTION_ANSWERED = {
  code: 'question-answered',
  status: 409,
  retryable: false,
  userMessage: 'Somebody has answered already.',
  remedy: 'Show the answer that came first.',
} as const;
export const QUESTION_EXPIRED = {
  code: 'question-expired',
  status: 410,
  retryable: false,
  userMessage: 'The question is no longer open.',
  remedy: 'Ask the agent again.',
} as const;
export const MAY_NOT_ANSWER = {
  code: 'may-not-answer',
  status: 403,
  retryable: false,
  userMessage: 'This question is for somebody else.',
  remedy: "Leave it to whom the question's answerBy names, or have the agent ask others as well.",
} as const;
export const NO_HISTORY = {
  code: 'no-history',
  status: 404,
  retryable: false,
  userMessage: 'There is no history here.',
  remedy: 'The upstream keeps none: store messages in onFinish.',
} as const;
export const MAX_TURNS = {
  code: 'max-turns',
  status: 502,
  retryable: false,
  userMessage: 'The agent took too many steps without coming to an answer.',
  remedy: 'Raise maxTurns of the run, or ask for less at once.',
} as const;
export const INPUT_BLOCKED = {
  code: 'input-blocked',
  status: 422,
  retryable: false,
  userMessage: 'A safety check did not let this message through.',
  remedy: 'An input guardrail of the agent tripped: word the message differently.',
} as const;
export const OUTPUT_BLOCKED = {
  code: 'output-blocked',
  status: 502,
  retryable: false,
  userMessage: 'A safety check stopped the answer.',
  remedy: 'An output guardrail of the agent tripped: see its result in the run.',
} as const;
export const TOOL_BLOCKED = {
  code: 'tool-blocked',
  status: 502,
  retryable: false,
  userMessage: 'A safety check stopped a tool.',
  remedy: 'A guardrail of one of the agent’s tools tripped: see its result in the run.',
} as const;
export const MODEL_TIMEOUT = {
  code: 'model-timeout',
  status: 504,
  retryable: true,
  userMessage: 'The model did not answer in time.',
  remedy: 'Send the message again, or raise the timeout of the model.',
} as const;
export const FILE_REFUSED = {
  code: 'file-refused',
  status: 400,
  retryable: false,
  userMessage: 'Only the address of a file is attached. Attach the file itself.',
  remedy: 'Send files as data: URLs, or allow their addresses with the fileUrls of the agent.',
} as const;
export const RUNNER_ABSENT = {
  code: 'runner-absent',
  status: 503,
  retryable: true,
  userMessage: 'The agent could not be started.',
  remedy: 'No runner has connected to the session: see its log for why, then send again.',
} as const;
export const RUNNER_LOST = {
  code: 'runner-lost',
  status: 502,
  retryable: true,
  userMessage: 'The agent was disconnected and did not come back.',
  remedy: 'Send the message again, or raise timing.runnerGraceMs.',
} as const;
export const SERVER_RESTARTED = {
  code: 'server-restarted',
  status: 502,
  retryable: true,
  userMessage: 'The agent was restarted in the middle of its answer.',
  remedy: 'Send the message again.',
} as const;
export const MAY_ONLY_WATCH = {
  code: 'may-only-watch',
  status: 403,
  retryable: false,
  userMessage: 'You may only watch here.',
  remedy: 'Have an owner of the session make you a collaborator.',
} as const;
export const QUEUE_FULL = {
  code: 'queue-full',
  status: 429,
  retryable: true,
  userMessage: 'Too many messages are waiting already.',
  remedy: 'Send again when some are answered, or raise limits.queuedPrompts.',
} as const;
export const CANNOT_STEER = {
  code: 'cannot-steer',
  status: 409,
  retryable: false,
  userMessage: 'The answer cannot take another message.',
  remedy: 'Send it as a message when the answer has ended.',
} as const;
export const NOT_QUEUED = {
  code: 'not-queued',
  status: 409,
  retryable: false,
  userMessage: 'This message is not waiting.',
  remedy: 'Stop its turn instead, if it runs.',
} as const;
export const PROMPT_TAKEN = {
  code: 'prompt-taken',
  status: 409,
  retryable: false,
  userMessage: 'Another message has this id.',
  remedy: 'Give every message an id of its own.',
} as const;
export const REPLACES_OTHERS = {
  code: 'replaces-others',
  status: 409,
  retryable: false,
  userMessage: 'Other people have written here since.',
  remedy:
    'Send it as a new message, or have an owner do it: only an owner may replace messages of other people.',
} as const;
export const STILL_ANSWERED = {
  code: 'still-answered',
  status: 409,
  retryable: true,
  userMessage: 'The last message is still being answered.',
  remedy: 'Wait for the end of the answer, or stop it, then regenerate or edit.',
} as const;
export const CONVERSATION_CHANGED = {
  code: 'conversation-changed',
  status: 409,
  retryable: false,
  userMessage: 'The conversation has changed since. Reload to see it.',
  remedy: 'Get the messages again, then name the one to regenerate by its id.',
} as const;
export const EVENTS_GONE = {
  code: 'events-gone',
  status: 410,
  retryable: false,
  userMessage: 'This answer is not kept event by event any more.',
  remedy: 'Read it in the history.',
} as const;
export const SESSION_FULL = {
  code: 'session-full',
  status: 413,
  retryable: false,
  userMessage: 'This session holds as much as it may.',
  remedy: 'Begin a new session, delete this one, or raise limits.sessionBytes or limits.channels.',
} as const;
export const TOO_MANY_SOCKETS = {
  code: 'too-many-sockets',
  status: 429,
  retryable: true,
  userMessage: 'There are too many connections.',
  remedy:
    'Close some or connect less often, or raise limits.socketsPerUser, limits.socketsPerSession or limits.initBytesPerSecond; of chats limits.chatSocketsPerUser or limits.chatSocketsPerAddress.',
} as const;
export const SOCKETS_FULL = {
  code: 'sockets-full',
  status: 503,
  retryable: true,
  userMessage: 'The server has no room for another connection.',
  remedy: 'Try again later, or raise limits.sockets or limits.pendingUpgrades.',
} as const;
export const TOO_MANY_MESSAGES = {
  code: 'too-many-messages',
  status: 429,
  retryable: true,
  userMessage: 'There were too many messages in a short time.',
  remedy: 'Send fewer a second, or raise limits.messagesPerSecond.',
} as const;
export const ACCESS_REVOKED = {
  code: 'access-revoked',
  status: 403,
  retryable: false,
  userMessage: 'You may not see this any more.',
  remedy: 'access or enabled said no when it was asked again: see timing.accessCheckMs.',
} as const;
export const DISCONNECTED = {
  code: 'disconnected',
  status: 401,
  retryable: true,
  userMessage: 'You were disconnected.',
  remedy: 'Resume: who it is and what they may do is asked anew.',
} as const;
export const TOO_MANY_TURNS = {
  code: 'too-many-turns',
  status: 429,
  retryable: true,
  userMessage: 'Too many answers are being written for you already.',
  remedy:
    'Send again when one has ended, or raise limits.liveTurnsPerUser (on a public route, limits.liveTurnsPerAddress).',
} as const;
export const TOO_MANY_VIEWERS = {
  code: 'too-many-viewers',
  status: 429,
  retryable: true,
  userMessage: 'Too many streams are open already.',
  remedy:
    'Close a stream, or raise limits.viewersPerUser (on a public route, limits.viewersPerAddress) or limits.viewersPerTurn.',
} as const;
export const TOO_MANY_REQUESTS = {
  code: 'too-many-requests',
  status: 429,
  retryable: true,
  userMessage: 'Too many requests. Try again in a moment.',
  remedy:
    "Send again in a moment. The gateway's limit on bodies, or the application's admit, refused it.",
} as const;
export const SERVER_FULL = {
  code: 'server-full',
  status: 503,
  retryable: true,
  userMessage: 'The server is busy. Try again in a moment.',
  remedy: 'Send again in a moment. The message names the limit: raise it, or add a server.',
} as const;
export const BODY_TOO_SLOW = {
  code: 'body-too-slow',
  status: 408,
  retryable: true,
  userMessage: 'The message took too long to arrive.',
  remedy: 'Send again, or raise timing.bodyMs (on a public route, timing.publicBodyMs).',
} as const;
export const INTERNAL_ERROR = {
  code: 'internal-error',
  status: 500,
  retryable: true,
  userMessage: 'Something went wrong.',
  remedy: 'See the log of the server.',
} as const;

export type ErrorKind =
  | typeof RUNTIME_NOT_READY
  | typeof RUN_FAILED
  | typeof RUN_ABORTED
  | typeof TURN_LOST
  | typeof NO_USER_MESSAGE
  | typeof BAD_REQUEST
  | typeof BODY_TOO_LARGE
  | typeof METHOD_NOT_ALLOWED
  | typeof UPSTREAM_UNREACHABLE
  | typeof UPSTREAM_DROPPED
  | typeof UPSTREAM_SILENT
  | typeof TOOL_SILENT
  | typeof UPSTREAM_FLOOD
  | typeof TRANSLATOR_FAILED
  | typeof TURN_TOO_LARGE
  | typeof TURN_FENCED
  | typeof SHUTTING_DOWN
  | typeof NOT_SIGNED_IN
  | typeof KEYS_UNAVAILABLE
  | typeof ORIGIN_REFUSED
  | typeof HOST_REFUSED
  | typeof SIGN_IN_EXPIRED
  | typeof NOT_FOUND
  | typeof HOOK_TIMEOUT
  | typeof VIEWER_TOO_SLOW
  | typeof LOG_FAILED
  | typeof LOG_UNAVAILABLE
  | typeof ATTACHMENTS_TOO_LARGE
  | typeof QUESTION_ANSWERED
  | typeof QUESTION_EXPIRED
  | typeof MAY_NOT_ANSWER
  | typeof NO_HISTORY
  | typeof MAX_TURNS
  | typeof INPUT_BLOCKED
  | typeof OUTPUT_BLOCKED
  | typeof TOOL_BLOCKED
  | typeof MODEL_TIMEOUT
  | typeof FILE_REFUSED
  | typeof RUNNER_ABSENT
  | typeof RUNNER_LOST
  | typeof SERVER_RESTARTED
  | typeof MAY_ONLY_WATCH
  | typeof QUEUE_FULL
  | typeof CANNOT_STEER
  | typeof NOT_QUEUED
  | typeof PROMPT_TAKEN
  | typeof REPLACES_OTHERS
  | typeof STILL_ANSWERED
  | typeof CONVERSATION_CHANGED
  | typeof EVENTS_GONE
  | typeof SESSION_FULL
  | typeof TOO_MANY_SOCKETS
  | typeof SOCKETS_FULL
  | typeof TOO_MANY_MESSAGES
  | typeof ACCESS_REVOKED
  | typeof DISCONNECTED
  | typeof TOO_MANY_TURNS
  | typeof TOO_MANY_VIEWERS
  | typeof TOO_MANY_REQUESTS
  | typeof SERVER_FULL
  | typeof BODY_TOO_SLOW
  | typeof INTERNAL_ERROR;

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

/** What the application would have a person shown, or else the default. */
export function toShownText(error: unknown, errorText?: (error: unknown) => string): string {
  try {
    const text = errorText?.(error);
    if (text) return String(text);
  } catch {
    // The application's own text failed: the default one is still fit for people.
  }
  return toErrorText(error);
}
