import { useState } from 'react';
import { toAnswerProblem, toLateNote } from './answer-problem.ts';
import type { AnswerQuestion } from './chat.ts';

type Options = {
  questionId: string;
  onAnswer: AnswerQuestion;
  /** The buttons are about to go: whoever pressed one has to be somewhere. */
  onSent(): void;
};

/** Gives somebody's answer to a question, once, and tells them if it did not count. */
export function useAnswer({ questionId, onAnswer, onSent }: Options) {
  const [isSending, setIsSending] = useState(false);
  const [problem, setProblem] = useState<string>();

  const send = async (answer: unknown) => {
    setIsSending(true);
    setProblem(undefined);
    onSent();
    try {
      // What became of it is told to every window, by the answer itself.
      setProblem(toLateNote(await onAnswer({ questionId, answer })));
    } catch (error) {
      setProblem(toAnswerProblem(error));
      setIsSending(false);
    }
  };
  return { isSending, problem, send };
}
