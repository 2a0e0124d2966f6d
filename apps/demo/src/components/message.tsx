import { isToolUIPart } from 'ai';
import { memo } from 'react';
import type { ChatMessage, ChatPart } from '../chat-message.ts';
import type { Thoughts } from '../chat-storage.ts';
import { toSteps } from '../to-steps.ts';
import { useHeldHeight } from '../use-held-height.ts';
import { Markdown } from './markdown.tsx';
import { Reasoning } from './reasoning.tsx';
import { PendingStep, Step } from './step.tsx';
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
};

export const AssistantMessage = memo(function AssistantMessage({
  message,
  thoughts,
  isLive,
  isLast,
}: AssistantMessageProps) {
  const phase = isLive ? 'growing' : isLast ? 'settled' : 'past';
  const { outerRef, innerRef } = useHeldHeight(phase);
  const steps = toSteps(message?.parts ?? []);
  return (
    <div ref={outerRef}>
      <article aria-busy={isLive} aria-label="Sabir" data-role="assistant" ref={innerRef}>
        {steps.map((step, position) => (
          <Step
            isLast={position === steps.length - 1}
            isLive={isLive}
            key={step.key}
            node={step.node}
          >
            {step.parts.map(({ part, index }) => (
              <Part
                durationMs={thoughts[`${message?.id}:${index}`]}
                isLive={isLive}
                key={`part-${index}`}
                part={part}
              />
            ))}
          </Step>
        ))}
        {steps.length === 0 && isLive ? <PendingStep /> : null}
        {message?.metadata?.usage && !isLive ? <UsageLine metadata={message.metadata} /> : null}
      </article>
    </div>
  );
});

type PartProps = { part: ChatPart; isLive: boolean; durationMs?: number };

function Part({ part, isLive, durationMs }: PartProps) {
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
  if (isToolUIPart(part)) return <ToolCard isLive={isLive} part={part} />;
  return null;
}
