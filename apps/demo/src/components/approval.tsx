import { type FormEvent, useId, useState } from 'react';
import type { AnswerQuestion } from '../chat.ts';
import type { Question } from '../chat-message.ts';
import { useAnswer } from '../use-answer.ts';
import { ExpiryLine, ProblemLine } from './question-line.tsx';

type ApprovalFormProps = {
  question: Question;
  toolName: string;
  /** Nobody has answered, and somebody still can. */
  isOpen: boolean;
  onAnswer: AnswerQuestion;
  /** The buttons are about to go: whoever pressed one has to be somewhere. */
  onSent(): void;
};

/** What an agent may do only if somebody says so, and what was said. */
export function ApprovalForm({ question, toolName, isOpen, onAnswer, onSent }: ApprovalFormProps) {
  const { questionId } = question;
  const { isSending, problem, send } = useAnswer({ questionId, onAnswer, onSent });
  const [reason, setReason] = useState('');
  const reasonId = useId();

  const deny = (event: FormEvent) => {
    event.preventDefault();
    const why = reason.trim();
    void send({ approved: false, ...(why && { reason: why }) });
  };

  const end = isOpen ? undefined : toEnd(question);
  return (
    <>
      {isOpen ? (
        <form className="border-t border-line px-3.5 py-3" onSubmit={deny}>
          <fieldset disabled={isSending}>
            <legend className="font-semibold">{question.text}</legend>
            <ExpiryLine expiresAt={question.expiresAt} />
            <div className="mt-3 flex flex-wrap items-center gap-2">
              <button
                aria-label={`Approve ${toolName}`}
                className="rounded-full bg-sea px-4 py-1.5 text-sm text-on-sea hover:opacity-90 disabled:bg-pill disabled:text-ink-soft"
                onClick={() => void send({ approved: true })}
                type="button"
              >
                Approve
              </button>
              <button
                aria-label={`Deny ${toolName}`}
                className="rounded-full border border-line-strong/60 px-4 py-1.5 text-sm hover:border-ink-soft disabled:text-ink-soft"
                type="submit"
              >
                Deny
              </button>
              <label className="sr-only" htmlFor={reasonId}>
                Why not, if you deny
              </label>
              <input
                className="min-w-44 flex-1 rounded-full border border-line bg-paper px-3.5 py-1.5 text-sm placeholder:text-ink-soft focus:border-sea disabled:text-ink-soft"
                id={reasonId}
                maxLength={200}
                onChange={(event) => setReason(event.target.value)}
                placeholder="Why not, if you deny (optional)"
                value={reason}
              />
            </div>
          </fieldset>
        </form>
      ) : null}
      {end ? <p className="px-3.5 pb-2.5 pl-9.5 text-sm text-ink-soft">{end}</p> : null}
      <ProblemLine problem={problem} />
    </>
  );
}

/** How the question ended, where the card itself does not say it. */
function toEnd({ status, answer }: Question): string | undefined {
  if (status === 'expired') return 'Nobody answered in time.';
  if (status === 'withdrawn') return 'The question was taken back.';
  const { approved, reason } = (answer ?? {}) as { approved?: unknown; reason?: unknown };
  if (approved !== false || typeof reason !== 'string') return undefined;
  return `Denied because: ${reason}`;
}
