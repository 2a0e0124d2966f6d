import { createMessageAccumulator, type MessageAccumulator } from '../../accumulator.ts';
import { RUN_FAILED, toShownText } from '../../errors.ts';
import { createId } from '../../id.ts';
import type { MessageMetadata, TurnOutcome, Usage } from '../../outcome.ts';
import { countSkipped, type Translator, type TranslatorStats } from '../../translator.ts';
import { type Calls, createCalls, isCallState } from './calls.ts';
import { DOMAIN_EVENTS } from './domain-events.ts';
import type {
  AgentOpsDataTypes,
  AgentOpsEvent,
  EventOf,
  SessionMessage,
  TurnEventType,
} from './events.ts';
import type { AgentOpsOptions } from './options.ts';
import { type Asked, createQuestions, type Questions, toAsked } from './questions.ts';
import { createSnapshotTexts, readSnapshot } from './snapshot.ts';
import { createTurnFinder } from './turn-finder.ts';

type AgentStatusData = AgentOpsDataTypes['agent-status'];
/** The kinds of event that bring text. The first that does is the turn's; the others repeat it. */
type TextSource = 'delta' | 'chunk' | 'snapshot' | 'final';
type Message = { accumulator: MessageAccumulator; calls: Calls; questions: Questions };

export interface AgentOpsTranslator extends Translator<AgentOpsEvent> {
  /** Our prompt is in the session's queue: silence is no sign of anything. */
  readonly waiting: boolean;
}

/**
 * Whether an event has what it needs to mean anything, and what it does: nothing if silent. What
 * turns out to be unsound only on the way gives false.
 */
type Mapping = {
  [Type in TurnEventType]: [
    isSound: (event: Loose) => boolean,
    // biome-ignore lint/suspicious/noConfusingVoidType: most of them give nothing back
    apply?: ((event: EventOf<Type>) => boolean | void) | undefined,
  ];
};
type Loose = Record<string, unknown>;

const anything = () => true;
const isObject = (value: unknown): value is Loose => typeof value === 'object' && value !== null;
const isString = (value: unknown): value is string => typeof value === 'string';
const isNamed = (id: unknown) => isString(id) && id !== '';
const isOfTurn = ({ turnId }: Loose) => turnId == null || isString(turnId);
const isMessage = ({ data }: Loose) => isObject(data) && isNamed(data.id);
const isOfQuestion = ({ promptId }: Loose) => isString(promptId);

const FINISHED: TurnOutcome = { status: 'finished' };
const ABORTED: TurnOutcome = { status: 'stopped', reason: 'aborted' };
const CANCELED: TurnOutcome = { status: 'stopped', reason: 'canceled' };
const WITHDRAWN: TurnOutcome = { status: 'stopped', reason: 'withdrawn' };
const FAILED: TurnOutcome = { status: 'failed', code: RUN_FAILED.code };

/**
 * Agent Ops events → chunks, for one turn, in whichever dialect they come.
 *
 * Owns which kind of event the turn's text is taken from, and what is known before the turn
 * begins. Which turn is ours is the finder's; part ids and order are the accumulator's.
 */
export function createAgentOpsTranslator(options: AgentOpsOptions = {}): AgentOpsTranslator {
  const stats: TranslatorStats = { unknown: {}, malformed: {} };
  const turn = createTurnFinder(options.channel, options.turnId);
  let texts = createSnapshotTexts();
  /** Made when the turn begins: only then its id is known. */
  let message: Message | undefined;
  let isOpen = false;
  let heldStatus: AgentStatusData | undefined;
  let textSource: TextSource | undefined;
  /** What went wrong in a turn that has not ended yet; there may be no words for it. */
  let failure: { cause: unknown } | undefined;
  let usage: Usage | undefined;

  const mapping: Mapping = {
    'message.create': [({ turnId }) => isNamed(turnId), only('v2', create)],
    'message.part.text-delta': [
      (event) => isOfTurn(event) && isString(event.delta),
      only('v2', ({ turnId, delta }) => speak(turnId, 'delta', delta)),
    ],
    'message.part.tool-update': [
      (event) => isOfTurn(event) && isCallState(event),
      only('v2', updateTool),
    ],
    'message.finalize': [isOfTurn, only('v2', finalize)],
    complete: [anything, only('v2', complete)],
    aborted: [anything, only('v2', abort)],
    'usage-report': [
      (event) => isOfTurn(event) && Array.isArray(event.entries),
      only('v2', addUsage),
    ],
    init: [anything, only('snapshot', init)],
    message: [isMessage, only('snapshot', receive)],
    'message.updated': [isMessage, only('snapshot', ({ data }) => update(data))],
    chunk: [
      ({ content }) => isString(content),
      only('snapshot', ({ messageId, content }) => speak(messageId, 'chunk', content)),
    ],
    agentStatus: [({ status }) => isString(status), showStatus],
    status: [({ data }) => data == null || isObject(data), readStatus],
    error: [anything, fail],
    question: [({ questionId }) => isNamed(questionId), (event) => ask(toAsked(event))],
    interactive_prompt: [
      ({ prompt }) => isObject(prompt) && isNamed(prompt.id),
      (event) => ask(toAsked(event)),
    ],
    interactive_prompt_resolved: [isOfQuestion, resolve],
    interactive_prompt_expired: [
      isOfQuestion,
      ({ promptId }) => message?.questions.settle(promptId, 'expired'),
    ],
    'queue.withdrawn': [anything, withdraw],
  };

  function only<Handler>(dialect: 'v2' | 'snapshot', handler: Handler): Handler | undefined {
    const { dialect: wanted = 'auto' } = options;
    return wanted === 'auto' || wanted === dialect ? handler : undefined;
  }

  function apply(type: string, event: Loose): keyof TranslatorStats | undefined {
    if (!Object.hasOwn(mapping, type)) return DOMAIN_EVENTS.has(type) ? undefined : 'unknown';
    // The table pairs each type with its own event; TypeScript cannot follow the pairing.
    const known = mapping[type as 'error'];
    if (!known[0](event)) return 'malformed';
    return known[1]?.(event as EventOf<'error'>) === false ? 'malformed' : undefined;
  }

  function count(kind: keyof TranslatorStats, type: string): void {
    const key = countSkipped(stats, kind, type);
    if (!key) return;
    try {
      options.logger?.warn(`${kind} session event`, { type: key });
    } catch {
      // There is nobody left to tell.
    }
  }

  function getMessage(): Message {
    if (message) return message;
    const { messageId, generateMessageId = createId, approvals: hasAnswers = false } = options;
    const accumulator = createMessageAccumulator(messageId ?? turn.turnId ?? generateMessageId());
    const questions = createQuestions(accumulator, () => calls, hasAnswers);
    const calls = createCalls(accumulator, { hasAnswers, onChange: questions.onCall });
    message = { accumulator, calls, questions };
    return message;
  }

  /** The message, in a turn that has begun. */
  function open(): Message {
    const { accumulator } = getMessage();
    if (!isOpen) {
      isOpen = true;
      accumulator.startStep();
      if (heldStatus) accumulator.data('agent-status', heldStatus, { transient: true });
    }
    return getMessage();
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
      failure = undefined;
    }
    open();
    return true;
  }

  function create(event: EventOf<'message.create'>): void {
    announce(event.turnId, event);
  }

  function speak(id: unknown, source: TextSource, text: string): void {
    if (turn.isOurs(id)) write(source, text);
    else turn.sawOther(id);
  }

  function write(source: TextSource, text: string): void {
    if (text === '') return;
    const { accumulator } = open();
    // Snapshots may tell what was said before we came; from then on it is said as it comes.
    const isFree = textSource === undefined || (textSource === 'snapshot' && source !== 'final');
    if (isFree) textSource = source;
    if (textSource === source) accumulator.delta('text', text);
  }

  function updateTool(event: EventOf<'message.part.tool-update'>): boolean {
    if (turn.isOurs(event.turnId)) return open().calls.update(event);
    turn.sawOther(event.turnId);
    return true;
  }

  function finalize({ turnId, reason, error, finalText }: EventOf<'message.finalize'>): void {
    if (turnId == null ? !turn.isBegun : !turn.isOurs(turnId)) {
      turn.sawOtherEnd();
      return;
    }
    if (isString(finalText)) write('final', finalText);
    finish(reason, isString(error) ? [error] : []);
  }

  function finish(reason: unknown, errors: unknown[]): void {
    if (reason === 'canceled') end(CANCELED);
    else if (reason === 'error' || errors.length > 0) end(FAILED, errors[0]);
    else if (reason === 'end_turn') end(FINISHED);
    else end({ status: 'finished', finishReason: 'other' });
  }

  function complete({ messageId }: EventOf<'complete'>): void {
    if (turn.takeComplete(messageId)) end(FINISHED);
  }

  function abort(): void {
    if (turn.isBegun) end(ABORTED);
  }

  function addUsage({ turnId, entries }: EventOf<'usage-report'>): void {
    if (!turn.isOurs(turnId)) return;
    usage ??= {};
    for (const entry of entries) {
      for (const key of ['inputTokens', 'outputTokens'] as const) {
        const tokens = entry?.[key];
        if (Number.isFinite(tokens)) usage[key] = (usage[key] ?? 0) + (tokens as number);
      }
    }
  }

  /** After a reconnect it tells how our turn stands. */
  function init({ session }: EventOf<'init'>): void {
    const messages: unknown = session?.messages;
    if (turn.turnId === undefined || !Array.isArray(messages)) return;
    for (const data of messages) if (data?.id === turn.turnId) update(data);
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
    if (!turn.isOurs(data.id)) {
      if (snapshot.isOver) turn.sawOtherEnd();
      else if (data.role) turn.sawOther(data.id);
      return undefined;
    }
    const { accumulator, calls } = open();
    let { isSound } = snapshot;
    let place = 0;
    for (const part of snapshot.content) {
      if ('call' in part) isSound = calls.update(part.call) && isSound;
      else {
        const isTextOpen = accumulator.openBlock === 'text';
        write('snapshot', texts.news(place++, part.text, isTextOpen));
      }
    }
    const { isOver, reason, errors } = snapshot;
    // The finish may come with the next snapshot.
    if (errors.length > 0) failure = { cause: errors[0] };
    if (isOver) finish(reason, errors);
    return isSound;
  }

  function showStatus({ status, detail, messageId, ...place }: EventOf<'agentStatus'>): void {
    if (!turn.isAboutUs(messageId) || !turn.isOurChannel(place)) return;
    turn.sawStatus(status, messageId);
    heldStatus = { status, ...(isString(detail) ? { detail } : undefined) };
    message?.accumulator.data('agent-status', heldStatus, { transient: true });
  }

  function readStatus({ data }: EventOf<'status'>): void {
    if (!data) return;
    turn.readQueue(data);
    if (turn.isWaiting) heldStatus = undefined;
    message?.questions.settle(data.questionAnswered, 'answered', data.answer);
    message?.questions.settle(data.questionExpired, 'expired');
    if (data.runnerDisconnected || data.watchdogRecovery) turn.orphan();
    else if ((data.runnerBusy === false || data.aborted) && turn.isBegun) {
      end(failure ? FAILED : ABORTED);
    }
  }

  function fail(event: EventOf<'error'>): void {
    const more = isObject(event.data) ? event.data : {};
    // Only an answer to a question was refused.
    if (event.promptId !== undefined || more.promptId !== undefined) return;
    if (!turn.isAboutUs(event.messageId) || !turn.isOurChannel(event)) return;
    end(FAILED, event.error ?? event.message ?? event.content ?? more.message);
  }

  function ask(asked: Asked | undefined): void {
    if (!asked || turn.turnId === undefined || !turn.isOurChannel(asked.place)) return;
    open().questions.ask(asked);
  }

  function resolve({ promptId, resolution }: EventOf<'interactive_prompt_resolved'>): void {
    const answer = resolution?.value ?? resolution?.actionId;
    message?.questions.settle(promptId, 'answered', answer);
  }

  function withdraw(): void {
    if (turn.isWaiting) end(WITHDRAWN);
  }

  function end(given: TurnOutcome | undefined, error?: unknown): void {
    const { accumulator, calls, questions } = getMessage();
    const isGood = given === undefined || given.status === 'finished';
    const outcome = failure && isGood ? FAILED : given;
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
      if (problem) count(problem, type);
      return message?.accumulator.take() ?? [];
    },
    end(outcome) {
      end(outcome);
      return message?.accumulator.take() ?? [];
    },
  };
}
