import { isToolUIPart } from 'ai';
import { memo } from 'react';
import type { AnswerQuestion } from '../chat.ts';
import { type ChatMessage, openQuestion, toText } from '../chat-message.ts';
import type { Thoughts } from '../chat-storage.ts';
import { toSources } from '../to-sources.ts';
import { type Step as StepData, toSteps } from '../to-steps.ts';
import { useHeldHeight } from '../use-held-height.ts';
import { QuestionCard } from './choice-form.tsx';
import { CopyButton } from './copy-button.tsx';
import { FileList } from './file-list.tsx';
import { RetryIcon } from './icons.tsx';
import { Markdown } from './markdown.tsx';
import { ACTION, MessageActions } from './message-actions.tsx';
import { Reasoning } from './reasoning.tsx';
import { Sources } from './sources.tsx';
import { PendingStep, Step, toStepLook } from './step.tsx';
import { ToolCard } from './tool-card.tsx';
import { UsageLine } from './usage-line.tsx';

type AssistantMessageProps = {
  /** Absent from the moment of sending until the first word. */
  message?: ChatMessage;
  thoughts: Thoughts;
  isLive: boolean;
  isLast: boolean;
  /** A question is answered with one of its options; else a call is approved or denied. */
  isChoice: boolean;
  onAnswer?: AnswerQuestion | undefined;
  /** Absent where this answer cannot be asked for once more. */
  onRetry?: (() => void) | undefined;
};

export const AssistantMessage = memo(function AssistantMessage({
  message,
  thoughts,
  isLive,
  isLast,
  isChoice,
  onAnswer,
  onRetry,
}: AssistantMessageProps) {
  const phase = isLive ? 'growing' : isLast ? 'settled' : 'past';
  const { outerRef, innerRef } = useHeldHeight(phase);
  const steps = toSteps(message?.parts ?? []);
  // The ports of call stand left of what they did; an agent without any has the whole width.
  const isRoute = steps.length === 0 || steps.some(({ node, agent }) => node ?? agent);
  const isWaiting = isLive && openQuestion(message) !== undefined;
  // While words still come, a list below them would only be pushed around.
  const text = message && !isLive ? toText(message) : '';
  const sources = isLive && !isWaiting ? [] : toSources(message?.parts ?? []);
  return (
    <div ref={outerRef}>
      <article
        aria-busy={isLive}
        aria-label="Sabir"
        className={`group ${isRoute ? 'pl-7 sm:pl-9' : ''}`}
        data-role="assistant"
        ref={innerRef}
      >
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
        {text || onRetry ? (
          <div className="mt-2 -ml-2">
            <MessageActions isShown={isLast}>
              {text ? <CopyButton className={ACTION} label="Copy answer" text={text} /> : null}
              {onRetry ? (
                <button
                  aria-label="Retry answer"
                  className={ACTION}
                  onClick={onRetry}
                  type="button"
                >
                  <RetryIcon />
                  Retry
                </button>
              ) : null}
            </MessageActions>
          </div>
        ) : null}
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
  if (part.type === 'file') return <FileList files={[part]} />;
  if (part.type === 'data-question') {
    return <QuestionCard isLive={isLive} onAnswer={onAnswer} question={part.data} />;
  }
  return null;
}
