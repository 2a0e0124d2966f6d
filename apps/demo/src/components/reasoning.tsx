import { useId, useState } from 'react';
import { ChevronIcon } from './icons.tsx';
import { Markdown } from './markdown.tsx';

type ReasoningProps = {
  text: string;
  isThinking: boolean;
  /** Known once the thought is complete, unless it was cut off. */
  durationMs?: number;
};

/** Open while the agent thinks, folded away when it is done; whoever opens or closes it decides. */
export function Reasoning({ text, isThinking, durationMs }: ReasoningProps) {
  const [chosen, setChosen] = useState<boolean | undefined>();
  const bodyId = useId();
  const isOpen = chosen ?? isThinking;
  return (
    <div data-part="reasoning" data-state={isThinking ? 'streaming' : 'done'}>
      <button
        aria-controls={bodyId}
        aria-expanded={isOpen}
        className="-mx-1.5 flex items-center gap-1.5 rounded-md px-1.5 py-0.5 text-sm text-ink-soft hover:text-ink"
        onClick={() => setChosen(!isOpen)}
        type="button"
      >
        {isThinking ? 'Thinking…' : toLabel(durationMs)}
        <span className={`motion-safe:transition-transform ${isOpen ? 'rotate-180' : ''}`}>
          <ChevronIcon />
        </span>
      </button>
      <div className="fold" data-open={isOpen} id={bodyId}>
        <div>
          {/* Reversed, a column keeps its end in sight by itself while it grows. */}
          <div
            className={`mt-1.5 border-l border-line pl-3.5 ${isThinking ? 'flex max-h-36 flex-col-reverse overflow-hidden' : ''}`}
          >
            <Markdown isLive={isThinking} quiet>
              {text}
            </Markdown>
          </div>
        </div>
      </div>
    </div>
  );
}

function toLabel(durationMs: number | undefined): string {
  if (durationMs === undefined) return 'Thought';
  return `Thought for ${Math.max(1, Math.round(durationMs / 1000))} s`;
}
