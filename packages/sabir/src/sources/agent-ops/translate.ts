import { toShownText } from '../../core/errors.ts';
import { createId } from '../../core/id.ts';
import type { Loose } from '../../core/loose.ts';
import type { MessageMetadata, TurnOutcome, Usage } from '../../core/outcome.ts';
import { toSafeLogger } from '../../core/safe-logger.ts';
import { countSkipped, type Translator, type TranslatorStats } from '../../core/translator.ts';
import { DOMAIN_EVENTS } from './domain-events.ts';
import { isNamed, isObject, isString, otherTypes, SHAPES } from './event-shapes.ts';
import type {
  AgentOpsDataTypes,
  AgentOpsEvent,
  EventOf,
  MessagePart,
  SessionMessage,
  TurnEventType,
} from './events.ts';
import { createLinkedTurn } from './linked-turn.ts';
import type { AgentOpsOptions } from './options.ts';
import { ABORTED, FINISHED, type Problem, toFailed, toOutcome, WITHDRAWN } from './outcomes.ts';
import { toAsked } from './questions.ts';
import { createQueuePlace } from './queue-place.ts';
import { createSnapshotTexts, isLinked, readSnapshot } from './snapshot.ts';
import { createTurnFinder } from './turn-finder.ts';
import { createTurnMessage, type TurnMessage } from './turn-message.ts';
import { addUsage } from './usage.ts';

type AgentStatusData = AgentOpsDataTypes['agent-status'];
/** The kinds of event that bring text. The first that does is the turn's; the others repeat it. */
type TextSource = 'delta' | 'chunk' | 'snapshot' | 'final';
type Asking = EventOf<'question'> | EventOf<'interactive_prompt'>;

export interface AgentOpsTranslator extends Translator<AgentOpsEvent> {
  /** Our prompt is in the session's queue: silence is no sign of anything. */
  readonly waiting: boolean;
}

// biome-ignore lint/suspicious/noConfusingVoidType: most of them give nothing back
type Handler<Type extends TurnEventType> = (event: EventOf<Type>) => boolean | void;
/** What turns out to be unsound only on the way gives false. */
type Handlers = { [Type in TurnEventType]: Handler<Type> };

const QUEUE = { id: 'queue' };

/**
 * Agent Ops events → chunks, for one turn, in whichever dialect they come.
 *
 * Owns which kind of event the turn's text is taken from, and what is known before the turn
 * begins. Which turn is ours is the finder's; part ids and order are the accumulator's.
 */
export function createAgentOpsTranslator(options: AgentOpsOptions = {}): AgentOpsTranslator {
  const logger = toSafeLogger(options.logger);
  const stats: TranslatorStats = { unknown: {}, malformed: {} };
  const turn =
    options.promptId === undefined
      ? createTurnFinder(options.channel, options.turnId)
      : createLinkedTurn(options.promptId, options.turnId);
  const ignored = otherTypes(options.dialect ?? 'auto');
  const queue = createQueuePlace((data) => {
    // Only a message whose id is known beforehand can be begun before its turn.
    if (options.messageId !== undefined) getMessage().accumulator.data('queue', data, QUEUE);
  }, options.mayHaveWaited);
  let texts = createSnapshotTexts();
  /** Made when the turn begins: only then its id is known. */
  let message: TurnMessage | undefined;
  let isOpen = false;
  let heldStatus: AgentStatusData | undefined;
  let textSource: TextSource | undefined;
  /** What went wrong in a turn that has not ended yet. */
  let failure: Problem | undefined;
  let usage: Usage | undefined;
  /** The place in our turn of the last of its events, where they say it. */
  let lastSeq = 0;

  const handlers: Handlers = {
    'message.create': create,
    'message.part.text-delta': ({ turnId, delta }) => speak(turnId, 'delta', delta),
    'message.part.reasoning-delta': think,
    'message.part.tool-update': (event) => inTurn(event)?.calls.update(event),
    'message.part.tool-input-delta': (event) => inTurn(event)?.calls.writeInput(event),
    'message.part.step': (event) => inTurn(event)?.parts.step(),
    'message.part.source': (event) => inTurn(event)?.parts.add({ ...event, type: 'source' }),
    'message.part.file': (event) => inTurn(event)?.parts.add({ ...event, type: 'file' }),
    'message.part.data': (event) => inTurn(event)?.parts.data(event, event.transient === true),
    'message.finalize': finalize,
    complete,
    aborted: ({ turnId }) => stop(turnId, ABORTED),
    'usage-report': count,
    init,
    message: receive,
    'message.updated': ({ data }) => update(data),
    chunk: ({ messageId, content }) => speak(messageId, 'chunk', content),
    agentStatus: showStatus,
    status: readStatus,
    error: fail,
    question: ask,
    interactive_prompt: ask,
    interactive_prompt_resolved: resolve,
    interactive_prompt_expired: ({ promptId }) => message?.questions.settle(promptId, 'expired'),
    'queue.state': ({ data }) => readPlaces(data),
    'queue.withdrawn': ({ data }) => withdraw(isObject(data) ? data.promptId : undefined),
  };

  function apply(type: string, event: Loose): keyof TranslatorStats | undefined {
    if (!Object.hasOwn(handlers, type)) return DOMAIN_EVENTS.has(type) ? undefined : 'unknown';
    if (turn.turnId === undefined) turn.learn(event);
    if (isRepeated(event)) return undefined;
    // The tables pair each type with its own event; TypeScript cannot follow the pairing.
    const known = type as 'error';
    if (!SHAPES[known](event)) return 'malformed';
    if (ignored?.has(type)) return undefined;
    return handlers[known](event as EventOf<'error'>) === false ? 'malformed' : undefined;
  }

  /** After a connection was lost, its last events may be told again. */
  function isRepeated({ turnId, seq }: Loose): boolean {
    if (typeof seq !== 'number' || !isString(turnId) || turnId !== turn.turnId) return false;
    if (seq <= lastSeq) return true;
    lastSeq = seq;
    return false;
  }

  function note(kind: keyof TranslatorStats, type: string): void {
    const key = countSkipped(stats, kind, type);
    if (key) logger?.warn(`${kind} session event`, { type: key });
  }

  function getMessage(): TurnMessage {
    const { messageId, generateMessageId = createId, approvals = false } = options;
    message ??= createTurnMessage(messageId ?? turn.turnId ?? generateMessageId(), approvals);
    return message;
  }

  /** The message, in a turn that has begun. */
  function open(): TurnMessage {
    const opened = getMessage();
    if (!isOpen) {
      const { accumulator } = opened;
      isOpen = true;
      queue.leave('begun');
      accumulator.startStep();
      if (heldStatus) accumulator.data('agent-status', heldStatus, { transient: true });
    }
    return opened;
  }

  function announce(id: string, place: EventOf<'message.create'> | SessionMessage): boolean {
    const before = turn.turnId;
    if (!turn.announce(id, place)) return false;
    if (before !== undefined && before !== id) {
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
    open();
    return true;
  }

  function create(event: EventOf<'message.create'>): void {
    // Which turn it is was not known when its place was looked at.
    if (announce(event.turnId, event)) isRepeated({ ...event });
  }

  function speak(id: unknown, source: TextSource, text: string): void {
    if (turn.isOurs(id)) write(source, text);
    else turn.sawOther(id);
  }

  function write(source: TextSource, text: string): void {
    if (text === '') return;
    const { parts } = open();
    // Snapshots may tell what was said before we came; from then on it is said as it comes.
    const isFree = textSource === undefined || (textSource === 'snapshot' && source !== 'final');
    if (isFree) textSource = source;
    if (textSource === source) parts.write('text', text);
  }

  /** The message, if something is said in our turn. */
  function inTurn({ turnId }: { turnId: unknown }): TurnMessage | undefined {
    if (turn.isOurs(turnId)) return open();
    turn.sawOther(turnId);
    return undefined;
  }

  function think(event: EventOf<'message.part.reasoning-delta'>): void {
    if (event.delta !== '') inTurn(event)?.parts.write('reasoning', event.delta);
  }

  function finalize(event: EventOf<'message.finalize'>): void {
    const { turnId, reason, error, code, finalText } = event;
    if (!turn.takesEnd(turnId)) {
      turn.sawOtherEnd();
      return;
    }
    if (isString(finalText)) write('final', finalText);
    const problem = isString(error) || reason === 'error' ? { cause: error, code } : undefined;
    end(toOutcome(reason, problem), isString(error) ? error : undefined);
  }

  function complete({ messageId }: EventOf<'complete'>): void {
    if (turn.takeComplete(messageId)) end(FINISHED);
  }

  function stop(turnId: unknown, outcome: TurnOutcome): void {
    if (turn.takesEnd(turnId)) end(outcome);
  }

  function count({ turnId, entries }: EventOf<'usage-report'>): void {
    if (turn.isOurs(turnId)) usage = addUsage(usage, entries);
  }

  /** After a reconnect it tells how our turn stands. */
  function init({ session, data: more }: EventOf<'init'>): void {
    const messages: unknown = session?.messages;
    readPlaces(more);
    for (const data of Array.isArray(messages) ? messages : []) {
      if (!isObject(data) || !isNamed(data.id)) continue;
      if (data.id !== turn.turnId && !isOfOurPrompt(data)) continue;
      update(data as SessionMessage);
      // What happened up to here is in the message.
      const { turnId, seq } = more?.turn ?? {};
      if (isLinked(data as SessionMessage)) isRepeated({ turnId, seq });
    }
  }

  function isOfOurPrompt({ role, promptId }: Loose): boolean {
    return role === 'assistant' && isString(promptId) && promptId === options.promptId;
  }

  function receive({ data }: EventOf<'message'>): boolean | undefined {
    if (data.role === 'user' && turn.isOurChannel(data)) turn.sawPrompt(data.id);
    if (data.role !== 'assistant') return undefined;
    // A turn begins with nothing said. What has words but no parts is a message of its own.
    const isTurn = Array.isArray(data.parts) || (data.parts == null && !data.content);
    const isKnown = data.id === turn.turnId;
    return (isTurn || isKnown) && announce(data.id, data) ? update(data) : undefined;
  }

  function update(data: SessionMessage): boolean | undefined {
    if (data.role !== undefined && data.role !== 'assistant') return undefined;
    const snapshot = readSnapshot(data);
    if (!snapshot) return undefined;
    if (isOfOurPrompt(data)) announce(data.id, data);
    if (!turn.isOurs(data.id)) {
      if (snapshot.isOver) turn.sawOtherEnd();
      else if (data.role) turn.sawOther(data.id);
      return undefined;
    }
    const { isOver, reason, problem, content } = snapshot;
    const isTold = isLinked(data) ? catchUp(content) : compare(content);
    if (snapshot.usage) usage = addUsage(undefined, [snapshot.usage]);
    // The finish may come with the next snapshot.
    failure = problem ?? failure;
    if (isOver) end(toOutcome(reason, problem), problem?.cause);
    return snapshot.isSound && isTold;
  }

  function catchUp(content: MessagePart[]): boolean {
    if (content.some(({ type }) => type === 'text')) textSource ??= 'snapshot';
    // Text that comes as it is written may come after a snapshot that has it already.
    return open().catchUp(content, textSource !== 'chunk');
  }

  /** Says what is new in a snapshot of a server that may overwrite one text with another. */
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

  function showStatus(event: EventOf<'agentStatus'>): void {
    const { status, detail, messageId } = event;
    if (!turn.isAboutUs(event) || !turn.isOurChannel(event)) return;
    turn.sawStatus(status, messageId);
    heldStatus = { status, ...(isString(detail) ? { detail } : undefined) };
    if (isOpen) message?.accumulator.data('agent-status', heldStatus, { transient: true });
  }

  function readStatus({ data }: EventOf<'status'>): void {
    if (!data) return;
    turn.readQueue(data);
    if (turn.isWaiting) heldStatus = undefined;
    message?.questions.settle(data.questionAnswered, 'answered', data.answer);
    message?.questions.settle(data.questionExpired, 'expired');
    queue.tell(turn.place);
    if (isString(options.promptId) && data.promptWithdrawn === options.promptId) {
      withdraw(options.promptId);
    } else if (data.runnerDisconnected || data.watchdogRecovery) turn.orphan();
    else if (data.runnerBusy === false || data.aborted) {
      stop(undefined, failure ? toFailed(failure) : ABORTED);
    }
  }

  function fail(event: EventOf<'error'>): void {
    const more = isObject(event.data) ? event.data : {};
    const { refused, questionId, turnId, promptId = more.promptId, code } = event;
    // Somebody's request was refused, often an answer to a question: no turn has failed.
    if (refused !== undefined || questionId !== undefined) return;
    if (promptId !== undefined && turnId == null) return;
    if (!turn.isAboutUs(event) || !turn.isOurChannel(event)) return;
    const cause = event.error ?? event.message ?? event.content ?? more.message;
    end(toFailed({ cause, ...(turnId != null && { code }) }), cause);
  }

  function ask(event: Asking): void {
    if (turn.turnId === undefined || !turn.isOurs((event as Loose).turnId)) return;
    const asked = toAsked(event);
    if (asked && turn.isOurChannel(asked.place)) open().ask(asked);
  }

  function resolve({ promptId, resolution }: EventOf<'interactive_prompt_resolved'>): void {
    const answer = resolution?.value ?? resolution?.actionId;
    message?.questions.settle(promptId, 'answered', answer);
  }

  function readPlaces(said: unknown): void {
    if (isObject(said)) turn.readPlaces(said.queue, said.queueReason);
    queue.tell(turn.place);
  }

  function withdraw(promptId: unknown): void {
    if (turn.isWithdrawn(promptId)) end(WITHDRAWN);
  }

  function end(given: TurnOutcome | undefined, error?: unknown): void {
    if (!isOpen) queue.leave('withdrawn');
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

  return {
    stats,
    get ended() {
      return message?.accumulator.isEnded ?? false;
    },
    get waiting() {
      return turn.isWaiting;
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
        // A proxy or a getter of somebody else's event threw: the rest of the turn is still good.
      }
      if (problem) note(problem, type);
      return message?.accumulator.take() ?? [];
    },
    end(outcome) {
      end(outcome);
      return message?.accumulator.take() ?? [];
    },
  };
}
