import { toShownText } from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import type { Loose } from '../../core/loose.ts';
import type { MessageMetadata, TurnOutcome, Usage } from '../../core/outcome.ts';
import { toSafeLogger } from '../../core/safe-logger.ts';
import { countSkipped, type Translator, type TranslatorStats } from '../../core/translator.ts';
import { DOMAIN_EVENTS } from './domain-events.ts';
import { isNamed, isObject, isString, soundnessOf, statusKindOf } from './event-shapes.ts';
import type {
  AgentOpsDataTypes,
  AgentOpsEvent,
  EventOf,
  MessagePart,
  SessionMessage,
  TurnEventType,
} from './events.ts';
import type { AgentOpsOptions } from './options.ts';
import { ABORTED, FINISHED, type Problem, toFailed, toOutcome, WITHDRAWN } from './outcomes.ts';
import { type AskingEvent, toAsked } from './questions.ts';
import { createSnapshotTexts, isLinked, readSnapshot } from './snapshot.ts';
import { createTurnMessage, type TurnMessage } from './turn-message.ts';
import { addUsage } from './usage.ts';

type AgentStatusData = AgentOpsDataTypes['agent-status'];
/** The kinds of event that bring text. The first that does is the turn's; the others repeat it. */
type TextSource = 'delta' | 'chunk' | 'snapshot' | 'final';

type TurnOptions = Omit<AgentOpsOptions, 'dialect' | 'channel'>;

// biome-ignore lint/suspicious/noConfusingVoidType: most of them give nothing back
type Handler<Type extends TurnEventType> = (event: EventOf<Type>) => boolean | void;
/** A handler gives false for an event that it finds malformed on the way. */
type Handlers = { [Type in TurnEventType]: Handler<Type> };

/**
 * The events of one Agent Ops turn → chunks, in either dialect.
 *
 * Owns which kind of event the turn's text is taken from, and what is known before the turn begins.
 * Part ids and order are the accumulator's.
 *
 * @param isOurs Whether a well-formed event is of this turn. Default: all are, a matcher in front has left out the others.
 */
export function createTurnTranslator(
  options: TurnOptions,
  isOurs?: (type: TurnEventType, event: Loose) => boolean,
): Translator<AgentOpsEvent> {
  const logger = toSafeLogger(options.logger);
  const stats: TranslatorStats = { unknown: {}, malformed: {} };
  let { turnId } = options;
  let texts = createSnapshotTexts();
  /** Made when the turn begins: only then its id is known. */
  let message: TurnMessage | undefined;
  let isOpen = false;
  let heldStatus: AgentStatusData | undefined;
  let textSource: TextSource | undefined;
  /** What went wrong in a turn that has not ended yet. */
  let failure: Problem | undefined;
  let usage: Usage | undefined;
  /** The place in our turn of the last of its events, where the server numbers them. */
  let lastSeq = 0;

  const handlers: Handlers = {
    'message.create': (event) => void begin(event.turnId),
    'message.part.text-delta': ({ delta }) => write('delta', delta),
    'message.part.reasoning-delta': ({ delta }) => {
      if (delta !== '') open().parts.write('reasoning', delta);
    },
    'message.part.tool-update': (event) => open().calls.update(event),
    'message.part.tool-input-delta': (event) => open().calls.writeInput(event),
    'message.part.step': () => open().parts.step(),
    'message.part.source': (event) => open().parts.add({ ...event, type: 'source' }),
    'message.part.file': (event) => open().parts.add({ ...event, type: 'file' }),
    'message.part.data': (event) => open().parts.data(event, event.transient === true),
    'message.finalize': finalize,
    complete: () => end(FINISHED),
    aborted: () => end(ABORTED),
    'usage-report': ({ entries }) => {
      usage = addUsage(usage, entries);
    },
    init,
    message: ({ data }) => update(data),
    'message.updated': ({ data }) => update(data),
    chunk: ({ content }) => write('chunk', content),
    agentStatus: showStatus,
    status: readStatus,
    error: fail,
    question: ask,
    interactive_prompt: ask,
    interactive_prompt_resolved: ({ promptId, resolution }) => {
      message?.questions.settle(promptId, 'answered', resolution?.value ?? resolution?.actionId);
    },
    interactive_prompt_expired: ({ promptId }) => message?.questions.settle(promptId, 'expired'),
    'queue.state': () => undefined,
    'queue.withdrawn': () => end(WITHDRAWN),
  };

  function apply(type: string, event: Loose): keyof TranslatorStats | undefined {
    const soundness = soundnessOf(type, event);
    if (soundness === 'malformed') return soundness;
    if (soundness === 'unknown') return DOMAIN_EVENTS.has(type) ? undefined : soundness;
    if (isOurs?.(type as TurnEventType, event) === false || isRepeated(event)) return undefined;
    // The table pairs each type with its own event; TypeScript cannot follow the pairing.
    const handle = handlers[type as 'error'];
    return handle(event as EventOf<'error'>) === false ? 'malformed' : undefined;
  }

  /** After a connection was lost, the server may send its last events again. */
  function isRepeated({ turnId: id, seq }: Loose): boolean {
    if (typeof seq !== 'number' || !isString(id) || id !== turnId) return false;
    if (seq <= lastSeq) return true;
    lastSeq = seq;
    return false;
  }

  function note(kind: keyof TranslatorStats, type: string): void {
    const key = countSkipped(stats, kind, type);
    if (key) logger?.warn(`${kind} session event`, { type: key });
  }

  function getMessage(): TurnMessage {
    message ??= makeMessage();
    return message;
  }

  function makeMessage(): TurnMessage {
    const { messageId, generateMessageId = createId, approvals = false } = options;
    return createTurnMessage(messageId ?? turnId ?? generateMessageId(), approvals);
  }

  /** The message, in a turn that has begun. */
  function open(): TurnMessage {
    const opened = getMessage();
    if (!isOpen) {
      const { accumulator } = opened;
      isOpen = true;
      accumulator.startStep();
      if (heldStatus) accumulator.data('agent-status', heldStatus, { transient: true });
    }
    return opened;
  }

  function begin(id: string): TurnMessage {
    if (turnId !== undefined && turnId !== id) {
      // The prompt was sent again after its runner had gone: what the first try left open ends.
      message?.calls.completeInputs();
      message?.accumulator.closeParts();
      isOpen = false;
      textSource = undefined;
      texts = createSnapshotTexts();
      message?.parts.restart();
      failure = undefined;
      lastSeq = 0;
    }
    turnId = id;
    return open();
  }

  function write(source: TextSource, text: string): void {
    if (text === '') return;
    const { parts } = open();
    // Snapshots may repeat what was written before we came; from then on it comes as it is written.
    const isFree = textSource === undefined || (textSource === 'snapshot' && source !== 'final');
    if (isFree) textSource = source;
    if (textSource === source) parts.write('text', text);
  }

  function finalize(event: EventOf<'message.finalize'>): void {
    const { reason, error, code, finalText } = event;
    if (isString(finalText)) write('final', finalText);
    const problem = isString(error) || reason === 'error' ? { cause: error, code } : undefined;
    end(toOutcome(reason, problem), isString(error) ? error : undefined);
  }

  /** After a reconnect it shows how our turn stands. */
  function init({ session, data: more }: EventOf<'init'>): void {
    const messages: unknown = session?.messages;
    for (const data of Array.isArray(messages) ? messages : []) {
      if (!isObject(data) || !isNamed(data.id)) continue;
      if (data.id !== turnId) continue;
      update(data as SessionMessage);
      // What happened up to here is in the message.
      const { turnId: id, seq } = more?.turn ?? {};
      if (isLinked(data as SessionMessage)) isRepeated({ turnId: id, seq });
    }
  }

  function update(data: SessionMessage): boolean | undefined {
    begin(data.id);
    const snapshot = readSnapshot(data);
    if (!snapshot) return undefined;
    const { isOver, reason, problem, content } = snapshot;
    const isShown = isLinked(data) ? catchUp(content) : compare(content);
    if (snapshot.usage) usage = addUsage(undefined, [snapshot.usage]);
    // The finish may come with the next snapshot.
    failure = problem ?? failure;
    if (isOver) end(toOutcome(reason, problem), problem?.cause);
    return snapshot.isSound && isShown;
  }

  function catchUp(content: MessagePart[]): boolean {
    if (content.some(({ type }) => type === 'text')) textSource ??= 'snapshot';
    // Text that comes as it is written may come after a snapshot that has it already.
    return open().catchUp(content, textSource !== 'chunk');
  }

  /** Writes what is new in a snapshot of a server that may overwrite one text with another. */
  function compare(content: MessagePart[]): boolean {
    const { accumulator, calls } = open();
    let isSound = true;
    let place = 0;
    for (const part of content) {
      if (part.type === 'tool-call') isSound = calls.update(part) && isSound;
      else if (part.type === 'text') {
        const isTextOpen = accumulator.openBlock === 'text';
        write('snapshot', texts.news(place++, part.text, isTextOpen));
      }
    }
    return isSound;
  }

  function showStatus({ status, detail }: EventOf<'agentStatus'>): void {
    heldStatus = { status, ...(isString(detail) ? { detail } : undefined) };
    if (isOpen) message?.accumulator.data('agent-status', heldStatus, { transient: true });
  }

  function readStatus({ data }: EventOf<'status'>): void {
    if (!data) return;
    message?.questions.settle(data.questionAnswered, 'answered', data.answer);
    message?.questions.settle(data.questionExpired, 'expired');
    const kind = statusKindOf(data);
    // While our prompt waits, the agent's status is of another turn.
    if (kind === 'queue') heldStatus = undefined;
    else if (kind === 'idle') end(failure ? toFailed(failure) : ABORTED);
  }

  function fail(event: EventOf<'error'>): void {
    const { turnId: id, code } = event;
    const more = isObject(event.data) ? event.data : {};
    const cause = event.error ?? event.message ?? event.content ?? more.message;
    end(toFailed({ cause, ...(id != null && { code }) }), cause);
  }

  function ask(event: AskingEvent): void {
    const asked = toAsked(event);
    if (asked) open().ask(asked);
  }

  function end(given: TurnOutcome | undefined, error?: unknown): void {
    const { accumulator, calls, questions } = getMessage();
    const isGood = given === undefined || given.status === 'finished';
    const outcome = failure && isGood ? toFailed(failure) : given;
    calls.completeInputs();
    if (outcome?.status !== 'paused') {
      questions.withdraw();
      calls.settle();
    }
    let text: string | undefined;
    if (outcome?.status === 'failed') {
      const cause = error ?? outcome.message ?? failure?.cause;
      if (cause !== undefined) text = toShownText(cause, options.errorText);
    }
    const metadata: MessageMetadata = usage ? { usage } : {};
    accumulator.end(outcome, metadata, text);
  }

  const take = () => message?.accumulator.take() ?? [];

  return {
    stats,
    get ended() {
      return message?.accumulator.isEnded ?? false;
    },
    push(event) {
      if (message?.accumulator.isEnded) return [];
      const repairs = message?.accumulator.repairs ?? 0;
      let type = '(no type)';
      let problem: keyof TranslatorStats | undefined = 'malformed';
      try {
        const given = (event as { type?: unknown } | null | undefined)?.type;
        if (isString(given)) {
          type = given;
          problem = apply(type, event as Loose);
          if ((message?.accumulator.repairs ?? 0) !== repairs) problem = 'malformed';
        }
      } catch {
        // A proxy or a getter of the event threw: the rest of the turn is still good.
      }
      if (problem) note(problem, type);
      return take();
    },
    end(outcome) {
      end(outcome);
      return take();
    },
  };
}
