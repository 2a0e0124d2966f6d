import { isToolUIPart } from 'ai';
import { memo } from 'react';
import type { AnswerQuestion } from '../chat.ts';
import { type ChatMessage, openQuestion } from '../chat-message.ts';
import type { Thoughts } from '../chat-storage.ts';
import { toSources } from '../to-sources.ts';
import { type Step as StepData, toSteps } from '../to-steps.ts';
import { useHeldHeight } from '../use-held-height.ts';
import { QuestionCard } from './choice-form.tsx';
import { Markdown } from './markdown.tsx';
import { Reasoning } from './reasoning.tsx';
import { Sources } from './sources.tsx';
import { PendingStep, Step, toStepLook } from './step.tsx';
import { ToolCard } from './tool-card.tsx';
import { UsageLine } from './usage-line.tsx';

export const UserMessage = memo(function UserMessage({ message }: { message: ChatMessage }) {
  const text = message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  return (
    <article aria-label="You" className="flex justify-end" data-role="user">
      <p className="max-w-[85%] rounded-2xl rounded-br-md bg-sea-wash px-4 py-2.5 whitespace-pre-wrap wrap-anywhere">
        {text}
      </p>
    </article>
  );
});

type AssistantMessageProps = {
  /** Absent from the moment of sending until the first word. */
  message?: ChatMessage;
  thoughts: Thoughts;
  isLive: boolean;
  isLast: boolean;
  /** A question is answered with one of its options; else a call is approved or denied. */
  isChoice: boolean;
  onAnswer?: AnswerQuestion | undefined;
};

export const AssistantMessage = memo(function AssistantMessage({
  message,
  thoughts,
  isLive,
  isLast,
  isChoice,
  onAnswer,
}: AssistantMessageProps) {
  const phase = isLive ? 'growing' : isLast ? 'settled' : 'past';
  const { outerRef, innerRef } = useHeldHeight(phase);
  const steps = toSteps(message?.parts ?? []);
  const isWaiting = isLive && openQuestion(message) !== undefined;
  // While words still come, a list below them would only be pushed around.
  const sources = isLive && !isWaiting ? [] : toSources(message?.parts ?? []);
  return (
    <div ref={outerRef}>
      <article aria-busy={isLive} aria-label="Sabir" data-role="assistant" ref={innerRef}>
        {steps.map((step, position) => (
          <Step
            isLast={position === steps.length - 1}
            key={step.key}
            look={toStepLook(step, {
              isLast: position === steps.length - 1,
              isLive,
              isWaiting,
              outcome: message?.metadata?.outcome,
            })}
            step={step}
          >
            {step.parts.map(({ part, index, question }) => (
              <Part
                durationMs={thoughts[`${message?.id}:${index}`]}
                isChoice={isChoice}
                isLive={isLive}
                key={`part-${index}`}
                onAnswer={onAnswer}
                part={part}
                question={question}
              />
            ))}
          </Step>
        ))}
        {sources.length > 0 ? <Sources sources={sources} /> : null}
        {steps.length === 0 && isLive ? <PendingStep /> : null}
        {message?.metadata?.usage && !isLive ? <UsageLine metadata={message.metadata} /> : null}
      </article>
    </div>
  );
});

type PartProps = Pick<StepData['parts'][number], 'part' | 'question'> & {
  isLive: boolean;
  isChoice: boolean;
  durationMs?: number | undefined;
  onAnswer: AnswerQuestion | undefined;
};

function Part({ part, question, isLive, isChoice, durationMs, onAnswer }: PartProps) {
  if (part.type === 'text') {
    return (
      <div data-part="text">
        <Markdown isLive={isLive && part.state === 'streaming'}>{part.text}</Markdown>
      </div>
    );
  }
  if (part.type === 'reasoning') {
    const isThinking = isLive && part.state === 'streaming';
    return <Reasoning durationMs={durationMs} isThinking={isThinking} text={part.text} />;
  }
  if (isToolUIPart(part)) {
    return <ToolCard {...{ part, question, isLive, isChoice, onAnswer }} />;
  }
  if (part.type === 'data-question' && onAnswer) {
    return <QuestionCard isLive={isLive} onAnswer={onAnswer} question={part.data} />;
  }
  return null;
}
