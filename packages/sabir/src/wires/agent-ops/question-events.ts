import type { Chunk } from '../../core/chunks.ts';
import { toJsonSafe } from '../../core/json.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import { questionOf } from '../../turns/question.ts';
import type { Emit } from './events.ts';

type Known = { status: unknown; asked: string; callId: string | undefined };

/** The questions of a turn: V2 has an event for the question and another for how it ended. */
export function createQuestionEvents(emit: Emit) {
  const questions = new Map<string, Known>();

  function ask(questionId: string, data: Loose): Known {
    const fields = toQuestionFields(questionId, data);
    const asked = JSON.stringify(fields);
    const known = questions.get(questionId);
    if (known?.asked !== asked) emit('question', fields);
    const question = { status: 'open', asked, callId: fields.callId };
    questions.set(questionId, question);
    return question;
  }

  return {
    push(chunk: Chunk): void {
      const question = questionOf(chunk);
      if (!question) return;
      const { questionId, status, answer } = question;
      if ((questions.get(questionId)?.status ?? 'open') !== 'open') return;
      const known = ask(questionId, toJsonSafe((chunk as Loose).data) as Loose);
      known.status = status;
      if (status === 'answered') {
        const given = toV2Answer(answer);
        const how = given === undefined ? undefined : { answer: given };
        emit('status', { data: { questionAnswered: questionId, ...how } });
      } else if (status === 'expired') emit('status', { data: { questionExpired: questionId } });
    },
    /** Whether a question about the call was asked, and neither answered nor expired. */
    isUnanswered(callId: string): boolean {
      for (const question of questions.values()) {
        if (question.callId !== callId) continue;
        if (question.status !== 'answered' && question.status !== 'expired') return true;
      }
      return false;
    },
  };
}

/** The fields that the question's event and its part of a message have in common. */
export function toQuestionFields(questionId: string, data: Loose) {
  const { text, options, expiresAt, toolCallId, answerBy } = data;
  const labels = Array.isArray(options) ? options.map(toLabel).filter(isString) : [];
  return {
    questionId,
    text: isString(text) ? text : '',
    ...(labels.length > 0 && { options: labels }),
    // Rounded down: V2 counts seconds, and no client should show a later end than the one that counts.
    ...(Number.isFinite(expiresAt) && { expiresAt: Math.floor((expiresAt as number) / 1_000) }),
    ...(isString(toolCallId) && { callId: toolCallId }),
    ...(answerBy !== undefined && { answerBy }),
  };
}

/** V2 has words, yes and no. */
export function toV2Answer(answer: unknown): string | boolean | undefined {
  if (isString(answer) || typeof answer === 'boolean') return answer;
  if (typeof answer === 'number') return String(answer);
  const { approved } = isObject(answer) ? answer : {};
  return typeof approved === 'boolean' ? approved : undefined;
}

function toLabel(option: unknown): unknown {
  return isObject(option) ? (option.label ?? option.id) : option;
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}
