import type { FinishReason } from '../../core/chunks.ts';
import type { Loose } from '../../core/loose.ts';
import type { TurnOutcome, Usage } from '../../core/outcome.ts';
import { isDomainEvent } from './domain-events.ts';
import type {
  OpenCodeError,
  OpenCodeMessageInfo,
  OpenCodePart,
  OpenCodeStatus,
  OpenCodeToolState,
  PropertiesOf,
  TurnEventType,
} from './events.ts';
import { createPartTexts } from './part-texts.ts';
import {
  fromPermission,
  fromQuestion,
  type OpenCodeRequest,
  PERMISSION_ANSWERS,
} from './requests.ts';

/** What the events of one turn come to. */
export type OpenCodeSignal =
  | { kind: 'text' | 'reasoning'; partId: string; delta: string }
  | { kind: 'tool'; callId: string; toolName: string; state: OpenCodeToolState }
  | { kind: 'file'; url: string; mediaType: string }
  | { kind: 'step' }
  | { kind: 'usage'; usage: Usage; costUsd: number; model?: string }
  | { kind: 'asked'; request: OpenCodeRequest }
  /** With the answer to each of its questions, or with none where it was turned away. */
  | { kind: 'replied'; requestId: string; answers?: string[] }
  | { kind: 'busy' }
  /** The model failed and is asked again. */
  | { kind: 'retry'; message: string }
  | { kind: 'end'; outcome: TurnOutcome; error?: OpenCodeError };

export type OpenCodeMessage = { info: OpenCodeMessageInfo; parts: OpenCodePart[] };

export type OpenCodeReader = ReturnType<typeof createOpenCodeReader>;

type Mapping = {
  [Type in TurnEventType]: [
    isSound: (properties: Loose) => boolean,
    apply: (properties: PropertiesOf<Type>) => void,
  ];
};

const isLoose = (value: unknown): value is Loose => typeof value === 'object' && value !== null;
const isString = (value: unknown): value is string => typeof value === 'string';
const isTool = (value: unknown) =>
  value === undefined || (isLoose(value) && isString(value.callID));
const isOfSession = ({ sessionID }: Loose) => isString(sessionID);
const isRequest = ({ id, tool, ...rest }: Loose) =>
  isString(id) && isTool(tool) && isOfSession(rest);
const isReply = ({ requestID, ...rest }: Loose) => isString(requestID) && isOfSession(rest);
const isInfo = ({ info }: Loose) => isLoose(info) && isString(info.id);

/** What a part must have to mean anything. The rest of the types are of no interest. */
const PARTS: Readonly<Record<string, (part: Loose) => boolean>> = {
  text: ({ text }) => isString(text),
  reasoning: ({ text }) => isString(text),
  tool: ({ tool, callID, state }) =>
    isString(tool) && isString(callID) && isLoose(state) && isString(state.status),
  file: ({ url, mime }) => isString(url) && isString(mime),
};

function isPart({ part }: Loose): boolean {
  if (!isLoose(part) || !isString(part.id) || !isString(part.messageID)) return false;
  const isSound = isString(part.type) && Object.hasOwn(PARTS, part.type) && PARTS[part.type];
  return isOfSession(part) && (isSound ? isSound(part) : true);
}

function isQuestion({ questions, ...rest }: Loose): boolean {
  const isOne = (one: unknown) =>
    isLoose(one) &&
    isString(one.question) &&
    (one.options === undefined ||
      (Array.isArray(one.options) && one.options.every((option) => isString(option?.label))));
  return Array.isArray(questions) && questions.every(isOne) && isRequest(rest);
}

const ABORTED = 'MessageAbortedError';
const FINISH_REASONS: ReadonlySet<string> = new Set<FinishReason>([
  'stop',
  'length',
  'content-filter',
  'tool-calls',
  'error',
]);

/**
 * OpenCode events → signals, for one session and one turn of it. Owns which messages are the turn's
 * answer, what was told of each part, and which sessions are those of its subagents.
 *
 * A turn is everything the agent says after a prompt until its session is idle. `after` is the last
 * message of the turns before; where it is given, the turn begins with the next message of a person.
 * What comes earlier is of a turn before, which may have been aborted and still be told of. An idle
 * session ends nothing before something was said or failed.
 */
export function createOpenCodeReader(options: {
  sessionId?: string | undefined;
  after?: string | undefined;
  signal(signal: OpenCodeSignal): void;
}) {
  const { after = '', signal } = options;
  const texts = createPartTexts();
  const answers = new Map<string, OpenCodeMessageInfo>();
  /** How each part is to be told: its kind for deltas, its call. */
  const kinds = new Map<string, 'text' | 'reasoning' | 'hidden'>();
  const callIds = new Map<string, string>();
  const takenCallIds = new Set<string>();
  const seenOnce = new Set<string>();
  /** The sessions of subagents, and the call that each works for. */
  const children = new Map<string, string | undefined>();
  const asked = new Set<string>();
  let sessionId = options.sessionId;
  let lastMessageId = after;
  let lastAnswer: OpenCodeMessageInfo | undefined;
  let failure: OpenCodeError | undefined;
  let isBegun = false;
  let isEnded = false;

  const mapping: Mapping = {
    'message.updated': [
      (properties) => isInfo(properties) && isOfSession(properties.info as Loose),
      ({ info }) => learnMessage(info),
    ],
    'message.part.updated': [isPart, ({ part }) => readPart(part)],
    'message.part.delta': [
      ({ partID, messageID, delta }) => isString(partID) && isString(messageID) && isString(delta),
      readDelta,
    ],
    'permission.asked': [
      (event) => isRequest(event) && isString(event.permission) && Array.isArray(event.patterns),
      (permission) => ask(permission, fromPermission),
    ],
    'permission.replied': [
      (event) => isReply(event) && Object.hasOwn(PERMISSION_ANSWERS, `${event.reply}`),
      ({ requestID, reply }) => settle(requestID, [PERMISSION_ANSWERS[reply]]),
    ],
    'question.asked': [isQuestion, (question) => ask(question, fromQuestion)],
    'question.replied': [
      (event) =>
        isReply(event) && Array.isArray(event.answers) && event.answers.every(Array.isArray),
      ({ requestID, answers: given }) =>
        settle(
          requestID,
          given.map((labels) => labels.join(', ')),
        ),
    ],
    'question.rejected': [isReply, ({ requestID }) => settle(requestID)],
    'session.created': [
      isInfo,
      ({ info: { id, parentID } }) => {
        if (parentID !== undefined && isOurs(parentID)) children.set(id, undefined);
      },
    ],
    'session.error': [
      ({ error }) => error === undefined || isLoose(error),
      ({ sessionID, error }) => {
        // What comes first is what happened; what follows says it again with a stack.
        if (isBegun && sessionID === sessionId) failure ??= error;
      },
    ],
    'session.status': [
      (event) => isOfSession(event) && isLoose(event.status),
      ({ sessionID, status }) => readStatus(sessionID, status),
    ],
    'session.idle': [isOfSession, ({ sessionID }) => idle(sessionID)],
  };

  function isOurs(id: string): boolean {
    return id === sessionId || children.has(id);
  }

  function learnMessage(info: OpenCodeMessageInfo): void {
    // Where nobody said which session it is, it is the first that says anything.
    sessionId ??= info.sessionID;
    if (info.sessionID !== sessionId || info.id <= after) return;
    if (info.id > lastMessageId) lastMessageId = info.id;
    isBegun ||= info.role === 'user' || options.after === undefined;
    if (!isBegun) return;
    // Summing up is no part of the answer, though the turn goes on after it.
    if (info.role !== 'assistant' || info.summary === true) return;
    answers.set(info.id, info);
    lastAnswer = info;
    if (info.error) failure ??= info.error;
  }

  function readPart(part: OpenCodePart): void {
    if (children.has(part.sessionID)) readChildPart(part);
    if (part.sessionID !== sessionId || !answers.has(part.messageID)) return;
    switch (part.type) {
      case 'text':
      case 'reasoning':
        kinds.set(part.id, part.synthetic || part.ignored ? 'hidden' : part.type);
        say(part.id, texts.whole(part.id, part.text));
        break;
      case 'tool':
        readTool(part);
        break;
      case 'file':
        if (isFirst(part.id)) signal({ kind: 'file', url: part.url, mediaType: part.mime });
        break;
      case 'step-start':
        // The try that failed before was not the last.
        failure = undefined;
        if (isFirst(part.id)) signal({ kind: 'step' });
        break;
      case 'step-finish':
        readUsage(part, answers.get(part.messageID));
        break;
    }
  }

  /** A subagent's words are its own; what it costs is part of what the turn costs. */
  function readChildPart(part: OpenCodePart): void {
    if (part.type === 'step-finish') readUsage(part);
    else if (part.type === 'tool') learnChild(part.state, children.get(part.sessionID));
  }

  function isFirst(partId: string): boolean {
    const isNew = !seenOnce.has(partId);
    seenOnce.add(partId);
    return isNew;
  }

  function readDelta({ partID, field, delta }: PropertiesOf<'message.part.delta'>): void {
    if (field === 'text' && kinds.has(partID)) say(partID, texts.delta(partID, delta));
  }

  function say(partId: string, delta: string): void {
    const kind = kinds.get(partId);
    if (delta !== '' && kind !== undefined && kind !== 'hidden') signal({ kind, partId, delta });
  }

  function readTool({ id, callID, tool, state }: OpenCodePart & { type: 'tool' }): void {
    let callId = callIds.get(id);
    if (callId === undefined) {
      // Some models count their calls from the beginning in each answer.
      callId = takenCallIds.has(callID) ? `${callID}-${id}` : callID;
      takenCallIds.add(callId);
      callIds.set(id, callId);
    }
    learnChild(state, callId);
    signal({ kind: 'tool', callId, toolName: tool, state });
  }

  function learnChild(state: OpenCodeToolState, callId: string | undefined): void {
    const child = state.status === 'running' ? state.metadata?.sessionId : undefined;
    if (isString(child) && callId !== undefined) children.set(child, callId);
  }

  function readUsage(
    part: OpenCodePart & { type: 'step-finish' },
    info?: OpenCodeMessageInfo,
  ): void {
    if (!isFirst(part.id)) return;
    const model = info?.providerID && info.modelID && `${info.providerID}/${info.modelID}`;
    signal({
      kind: 'usage',
      usage: toUsage(part.tokens),
      costUsd: numberOf(part.cost),
      ...(model && { model }),
    });
  }

  function ask<Request extends { id: string; sessionID: string; tool?: { callID: string } }>(
    request: Request,
    toRequest: (request: Request, callId: string | undefined) => OpenCodeRequest,
  ): void {
    if (!isOurs(request.sessionID) || asked.has(request.id)) return;
    asked.add(request.id);
    const isChild = request.sessionID !== sessionId;
    const callId = isChild ? children.get(request.sessionID) : request.tool?.callID;
    signal({ kind: 'asked', request: toRequest(request, callId) });
  }

  function settle(requestId: string, given?: string[]): void {
    if (asked.has(requestId)) {
      signal({ kind: 'replied', requestId, ...(given && { answers: given }) });
    }
  }

  function readStatus(id: string, status: OpenCodeStatus): void {
    if (id !== sessionId || !isBegun) return;
    if (status.type === 'idle') idle(id);
    else if (status.type === 'retry') signal({ kind: 'retry', message: `${status.message}` });
    else signal({ kind: 'busy' });
  }

  function idle(id: string): void {
    if (id !== sessionId || isEnded || (!lastAnswer && !failure)) return;
    isEnded = true;
    signal({
      kind: 'end',
      outcome: outcomeOf(lastAnswer, failure),
      ...(failure && { error: failure }),
    });
  }

  return {
    get isEnded() {
      return isEnded;
    },
    get hasAnswer() {
      return lastAnswer !== undefined;
    },
    /** The latest message that was told of: what comes behind it is of a later turn. */
    get lastMessageId() {
      return lastMessageId;
    },
    /** What kept it from being read, if anything did. */
    read(event: unknown): 'unknown' | 'malformed' | undefined {
      const { type, properties } = (event ?? {}) as Loose;
      if (!isString(type)) return 'malformed';
      if (!Object.hasOwn(mapping, type)) return isDomainEvent(type) ? undefined : 'unknown';
      // The table pairs each type with its own properties; TypeScript cannot follow the pairing.
      const [isSound, apply] = mapping[type as 'session.idle'];
      if (!isLoose(properties) || !isSound(properties)) return 'malformed';
      if (!isEnded) apply(properties as PropertiesOf<'session.idle'>);
      return undefined;
    },
    /**
     * Events have been missed: `messages` is how the session stands, the oldest first. What streams
     * at this time is told when it is whole, since nobody knows what is missing of it; and what is whole
     * may still be told of, by events that were on their way.
     */
    catchUp(messages: OpenCodeMessage[]): void {
      for (const { info, parts } of messages) {
        learnMessage(info);
        for (const part of parts) {
          if ('text' in part) texts.cut(part.id);
          readPart(part);
        }
      }
    },
  };
}

function outcomeOf(answer?: OpenCodeMessageInfo, failure?: OpenCodeError): TurnOutcome {
  if (failure?.name === ABORTED) return { status: 'stopped', reason: 'aborted' };
  if (failure) return { status: 'failed', code: 'run-failed' };
  const finish = answer?.finish;
  if (finish !== undefined) {
    const finishReason = (FINISH_REASONS.has(finish) ? finish : 'other') as FinishReason;
    return { status: 'finished', finishReason };
  }
  // Aborted while it waited to ask the model again; or else its server was gone in the meantime.
  return answer?.time?.completed ? { status: 'stopped', reason: 'aborted' } : { status: 'lost' };
}

/** Elsewhere input is all that went in, and output all that came out. */
function toUsage(tokens: unknown): Usage {
  const { input, output, reasoning, cache, total } = isLoose(tokens) ? tokens : ({} as Loose);
  const { read, write } = isLoose(cache) ? cache : ({} as Loose);
  const usage: Usage = {
    inputTokens: numberOf(input) + numberOf(read) + numberOf(write),
    outputTokens: numberOf(output) + numberOf(reasoning),
  };
  usage.totalTokens = numberOf(total) || (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0);
  if (numberOf(reasoning) > 0) usage.reasoningTokens = numberOf(reasoning);
  if (numberOf(read) > 0) usage.cachedInputTokens = numberOf(read);
  return usage;
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}
