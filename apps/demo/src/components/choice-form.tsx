import { type FormEvent, useRef, useState } from 'react';
import type { AnswerQuestion } from '../chat.ts';
import type { Question } from '../chat-message.ts';
import { useAnswer } from '../use-answer.ts';
import { ExpiryLine, ProblemLine } from './question-line.tsx';

type ChoiceFormProps = {
  question: Question;
  /** Nobody has answered, and somebody still can. */
  isOpen: boolean;
  onAnswer: AnswerQuestion;
  /** The buttons are about to go: whoever pressed one has to be somewhere. */
  onSent(): void;
};

const FIRST =
  'rounded-full bg-sea px-4 py-1.5 text-sm text-on-sea hover:opacity-90 disabled:bg-pill disabled:text-ink-soft';
const OTHER =
  'rounded-full border border-line-strong/60 px-4 py-1.5 text-sm hover:border-ink-soft disabled:text-ink-soft';

/** What an agent asks everybody, and what was said. The first answer counts, whoever gave it. */
export function ChoiceForm({ question, isOpen, onAnswer, onSent }: ChoiceFormProps) {
  const { questionId, text, options, expiresAt } = question;
  const { isSending, problem, send } = useAnswer({ questionId, onAnswer, onSent });
  return (
    <>
      {isOpen ? (
        <fieldset
          className="border-t border-line px-3.5 py-3 first:border-t-0"
          disabled={isSending}
        >
          <legend className="float-left w-full font-semibold">{text}</legend>
          <div className="clear-both">
            <ExpiryLine expiresAt={expiresAt} />
          </div>
          {options?.length ? (
            <div className="mt-3 flex flex-wrap gap-2">
              {options.map((option, index) => (
                <button
                  className={index === 0 ? FIRST : OTHER}
                  key={option}
                  onClick={() => void send(option)}
                  type="button"
                >
                  {option}
                </button>
              ))}
            </div>
          ) : (
            <WordsForm label={text} onSend={send} />
          )}
        </fieldset>
      ) : (
        <QuestionText question={question} />
      )}
      <ProblemLine problem={problem} />
    </>
  );
}

/** What was asked and what came of it, for a person who cannot answer, or no longer. */
export function QuestionText({ question }: { question: Question }) {
  return (
    <p className="px-3.5 pb-2.5 pl-9.5 text-sm text-ink-soft first:py-2.5 first:pl-3.5">
      {question.text} {toEnd(question)}
    </p>
  );
}

type QuestionCardProps = {
  question: Question;
  isLive: boolean;
  /** Absent for a person who may only watch. */
  onAnswer: AnswerQuestion | undefined;
};

/** A question that belongs to no tool call. */
export function QuestionCard({ question, isLive, onAnswer }: QuestionCardProps) {
  const cardRef = useRef<HTMLDivElement>(null);
  const isOpen = isLive && question.status === 'open';
  return (
    <div
      className={`rounded-xl border bg-raised ${isOpen ? 'border-terracotta/55' : 'border-line'}`}
      data-part="question"
      ref={cardRef}
      tabIndex={-1}
    >
      {onAnswer ? (
        <ChoiceForm
          isOpen={isOpen}
          onAnswer={onAnswer}
          onSent={() => cardRef.current?.focus()}
          question={question}
        />
      ) : (
        <QuestionText question={question} />
      )}
    </div>
  );
}

/** For a question without options. */
function WordsForm({ label, onSend }: { label: string; onSend(words: string): void }) {
  const [words, setWords] = useState('');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (words.trim()) onSend(words.trim());
  };
  return (
    <form className="mt-3 flex flex-wrap gap-2" onSubmit={submit}>
      <input
        aria-label={label}
        className="min-w-44 flex-1 rounded-full border border-line bg-paper px-3.5 py-1.5 text-sm focus:border-sea disabled:text-ink-soft"
        onChange={(event) => setWords(event.target.value)}
        value={words}
      />
      <button className={FIRST} disabled={words.trim() === ''} type="submit">
        Answer
      </button>
    </form>
  );
}

function toEnd({ status, answer }: Question): string {
  if (status === 'open') return 'Waiting for an answer.';
  if (status === 'answered') return `Answered: ${String(answer ?? 'yes')}`;
  if (status === 'expired') return 'Nobody answered in time.';
  return 'The question was taken back.';
}
