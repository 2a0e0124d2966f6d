import { createMessageAccumulator } from '../../core/accumulator.ts';
import { createCalls } from './calls.ts';
import type { MessagePart } from './events.ts';
import { createMessageParts } from './message-parts.ts';
import { type Asked, createQuestions, toAsked } from './questions.ts';

type QuestionPart = Extract<MessagePart, { type: 'question' }>;
export type TurnMessage = ReturnType<typeof createTurnMessage>;

/** Every call has an id, perhaps one that an accumulator minted for the same message elsewhere: none is minted here. */
const NOT_MINTED = '\0';

/** The message of a turn: what owns its calls, its questions and its other parts, put together. */
export function createTurnMessage(messageId: string, hasAnswers: boolean) {
  const accumulator = createMessageAccumulator(messageId, NOT_MINTED);
  const questions = createQuestions(accumulator, () => calls, hasAnswers);
  // The arguments of a call do not go on in another step.
  const parts = createMessageParts(accumulator, () => calls.completeInputs());
  const calls = createCalls(accumulator, {
    hasAnswers,
    onBegin: parts.touch,
    onChange: questions.onCall,
  });

  function put(asked: Asked): void {
    if (!questions.has(asked.questionId)) {
      parts.touch();
      // Of a server that keeps the parts in their order: what is said next stands behind it.
      if (asked.isOfNamedTurn) accumulator.closeBlock();
    }
    questions.ask(asked);
  }

  function ask(asked: Asked): void {
    put(asked);
    questions.settleIfOver(asked.questionId);
  }

  function tellQuestion(part: QuestionPart): void {
    const asked = toAsked(part);
    if (asked) put({ ...asked, isOfNamedTurn: true });
    if (part.status !== 'open') questions.settle(part.questionId, part.status, part.answer);
  }

  return {
    accumulator,
    calls,
    questions,
    parts,
    ask,
    /**
     * Says what is new in a snapshot whose parts are what was said, in the order it was said. False
     * if something in it says nothing.
     */
    catchUp(content: MessagePart[], hasTexts: boolean): boolean {
      let isSound = true;
      // How a question ended is said here: the end of its call would tell less.
      for (const part of content) {
        if (part.type === 'question' && questions.has(part.questionId)) tellQuestion(part);
      }
      parts.catchUp(content, hasTexts, (part) => {
        if (part.type === 'tool-call') isSound = calls.update(part) && isSound;
        else if (part.type === 'question') tellQuestion(part);
      });
      return isSound;
    },
  };
}
