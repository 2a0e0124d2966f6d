import { BEGUN, CALLED, OVER, stageOf } from '../sources/agent-ops/calls.ts';
import { SHAPES } from '../sources/agent-ops/event-shapes.ts';
import type { MessagePart, ToolCallState } from '../sources/agent-ops/index.ts';
import { dataKeyOf, toFileChunk, toSourceChunk } from '../sources/agent-ops/part-shapes.ts';
import { toAsked } from '../sources/agent-ops/questions.ts';
import { addUsage } from '../sources/agent-ops/usage.ts';
import type { Finalize, PartEvent, QuestionEvent, TurnEvent, UsageEntry } from './protocol.ts';

type PartOf<Type> = Extract<MessagePart, { type: Type }>;
type Text = PartOf<'text' | 'reasoning'>;
type Call = PartOf<'tool-call'>;
type Question = PartOf<'question'>;
type Data = PartOf<'data'>;
type EventOf<Type> = Extract<PartEvent, { type: Type }>;

/** What a call that never answered is closed with, as in the message of who watched. */
const NO_RESULT = 'The tool gave no result.';

/**
 * A turn's events → the parts of its message, as they are stored. Read again, they make the very
 * message that the events made for whoever watched: that is why this decides as the translator of
 * `sources/agent-ops` does what is a part of its own, what changes one, and what says nothing.
 */
export function createTurnRecord() {
  const parts: MessagePart[] = [];
  const calls = new Map<string, Call>();
  const questions = new Map<string, Question>();
  const data = new Map<string, Data>();
  let usage: PartOf<'usage'> | undefined;
  /** What the next words of its kind are added to. */
  let open: Text | undefined;
  let hasText = false;
  let isStepEmpty = true;
  let isCreated = false;
  let isFinal = false;

  function put<Part extends MessagePart>(part: Part): Part {
    parts.push(part);
    isStepEmpty = false;
    return part;
  }

  /** Behind a part of its own the next words are one too. */
  function putAlone<Part extends MessagePart>(part: Part): Part {
    open = undefined;
    return put(part);
  }

  function write(type: Text['type'], delta: string): void {
    if (delta === '') return;
    hasText ||= type === 'text';
    const part = open?.type === type ? open : putAlone<Text>({ type, text: '' });
    part.text += delta;
    open = part;
  }

  function update(event: ToolCallState): void {
    const { callId, toolName, status, args, result, error } = event;
    const known = calls.get(callId);
    if (!known && (typeof toolName !== 'string' || toolName === '')) return;
    const stage = stageOf(event);
    const before = known ? stageOf(known) : 0;
    if (stage <= before) return;
    const call = known ?? begin(callId, toolName as string);
    if (stage === BEGUN) return;
    call.status = status;
    if (before < CALLED) {
      call.args = args ?? {};
      // Nothing follows by which it could be seen that this text is at its end.
      if (open) open.streaming = false;
      open = undefined;
    }
    if (stage !== OVER) return;
    if (status === 'error') call.error = error;
    else if (result !== undefined) call.result = result;
    for (const question of questions.values()) {
      if (question.callId === callId) settle(question, 'answered');
    }
  }

  function begin(callId: string, toolName: string): Call {
    const call = putAlone<Call>({ type: 'tool-call', callId, toolName, status: 'pending' });
    calls.set(callId, call);
    return call;
  }

  /** The arguments of a call do not go on in another step, or when the turn is over. */
  function completeInputs(): void {
    for (const call of calls.values()) {
      if (call.status === 'pending') Object.assign(call, { status: 'running', args: {} });
    }
  }

  function step(): void {
    if (isStepEmpty) return;
    completeInputs();
    putAlone({ type: 'step' });
    isStepEmpty = true;
  }

  function addSource(event: EventOf<'message.part.source'>): void {
    const { type: _, providerMetadata: __, ...source } = toSourceChunk(event);
    put({ type: 'source', ...source });
  }

  function addData(event: EventOf<'message.part.data'>): void {
    if (event.transient === true) return;
    const { name, id, data: value } = event;
    const key = dataKeyOf(event);
    const known = key === undefined ? undefined : data.get(key);
    if (known) known.data = value;
    else {
      const part = put<Data>({ type: 'data', name, ...(key && { id: id as string }), data: value });
      if (key !== undefined) data.set(key, part);
    }
  }

  function ask(event: QuestionEvent): void {
    const asked = toAsked(event);
    if (!asked) return;
    const { questionId, text, options, callId, answerBy } = asked;
    const known = questions.get(questionId);
    if (known && known.status !== 'open') return;
    const question =
      known ?? putAlone<Question>({ type: 'question', questionId, text, status: 'open' });
    questions.set(questionId, question);
    question.text = text;
    if (options) question.options = options;
    if (callId !== undefined) question.callId = callId;
    if (answerBy !== undefined) question.answerBy = answerBy;
    if (asked.expiresAt !== undefined && event.expiresAt !== undefined) {
      question.expiresAt = event.expiresAt;
    }
    const call = calls.get(question.callId ?? '');
    if (call && stageOf(call) === OVER) settle(question, 'answered');
  }

  function settle(question: Question, status: Question['status'], answer?: string | boolean): void {
    if (question.status !== 'open') return;
    question.status = status;
    if (answer !== undefined) question.answer = answer;
  }

  function count(entries: UsageEntry[]): void {
    const total = addUsage(usage?.usage, entries);
    if (usage) usage.usage = total;
    else {
      usage = { type: 'usage', usage: total };
      parts.push(usage);
    }
  }

  function finish({ reason, finalText, error, code }: Finalize): void {
    if (!hasText && typeof finalText === 'string') write('text', finalText);
    for (const question of questions.values()) settle(question, 'withdrawn');
    completeInputs();
    for (const call of calls.values()) {
      if (stageOf(call) < OVER) Object.assign(call, { status: 'error', error: NO_RESULT });
    }
    const hasWords = typeof error === 'string';
    if (hasWords || (reason === 'error' && code !== undefined)) {
      parts.push({
        type: 'error',
        message: hasWords ? error : '',
        ...(code !== undefined && { code }),
      });
    }
    parts.push({ type: 'finish', reason });
    isFinal = true;
  }

  return {
    /** What is no event of a turn, or not what it should be, is ignored; so is what follows the end. */
    push(event: TurnEvent): void {
      if (event.type === 'message.create') isCreated = true;
      else if (isFinal || !SHAPES[event.type]?.(event)) return;
      else if (event.type === 'message.part.text-delta') write('text', event.delta);
      else if (event.type === 'message.part.reasoning-delta') write('reasoning', event.delta);
      else if (event.type === 'message.part.tool-update') update(event);
      else if (event.type === 'message.part.tool-input-delta') {
        const { callId, toolName } = event;
        update({ callId, status: 'pending', ...(toolName !== undefined && { toolName }) });
      } else if (event.type === 'message.part.step') step();
      else if (event.type === 'message.part.source') addSource(event);
      else if (event.type === 'message.part.file') putAlone(toFileChunk(event));
      else if (event.type === 'message.part.data') addData(event);
      else if (event.type === 'question') ask(event);
      else if (event.type === 'usage-report') count(event.entries);
      else finish(event);
    },
    settleQuestion(
      questionId: string,
      status: 'answered' | 'expired' | 'withdrawn',
      answer?: string | boolean,
    ): void {
      const question = questions.get(questionId);
      if (question && !isFinal) settle(question, status, answer);
    },
    /** In their order; they go on changing until the turn is over. */
    get parts(): readonly MessagePart[] {
      return parts;
    },
    /** All text. */
    get content(): string {
      return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
    },
    get isCreated(): boolean {
      return isCreated;
    },
    get isFinal(): boolean {
      return isFinal;
    },
  };
}
