import type { AnswerResult } from 'sabir/client';

/** Why an answer did not count, for whoever gave it; undefined if it did. */
export function toLateNote({ status, answer }: AnswerResult): string | undefined {
  if (status === 'expired') return 'Too late: this question is no longer open.';
  if (status === 'accepted') return undefined;
  return `Somebody was faster${toWords(answer)}.`;
}

function toWords(answer: unknown): string {
  if (typeof answer === 'string') return `, and said “${answer}”`;
  const { approved } = (answer ?? {}) as { approved?: unknown };
  if (approved === true) return ', and approved it';
  return approved === false ? ', and denied it' : '';
}

/** Why an answer could not be given at all. */
export function toAnswerProblem(error: unknown): string {
  const { status } = (error ?? {}) as { status?: unknown };
  if (status === 403) return 'This question is for somebody else.';
  if (status === 404) return 'The desk no longer knows this question. Ask it again.';
  if (status === undefined) return 'The server cannot be reached. Try again in a moment.';
  return 'Your answer did not arrive. Try again in a moment.';
}
