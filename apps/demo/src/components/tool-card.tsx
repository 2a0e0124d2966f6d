import type { DynamicToolUIPart, ToolUIPart } from 'ai';
import { getToolName } from 'ai';
import { type ReactNode, useId, useState } from 'react';
import { CheckIcon, ChevronIcon, CrossIcon } from './icons.tsx';
import { ScrollBox } from './scroll-box.tsx';

type ToolPart = ToolUIPart | DynamicToolUIPart;
type CardState = 'preparing' | 'running' | 'done' | 'failed' | 'stopped';

const LABELS: Record<CardState, string> = {
  preparing: 'Preparing',
  running: 'Running',
  done: 'Done',
  failed: 'Failed',
  stopped: 'Stopped',
};

/** One call of a tool: a line that says what and how it went, and everything else behind a click. */
export function ToolCard({ part, isLive }: { part: ToolPart; isLive: boolean }) {
  const [isOpen, setIsOpen] = useState(false);
  const bodyId = useId();
  const state = toCardState(part, isLive);
  const name = getToolName(part);
  return (
    <div
      className="overflow-hidden rounded-xl border border-line bg-raised"
      data-part="tool"
      data-state={state}
    >
      <button
        aria-controls={bodyId}
        aria-expanded={isOpen}
        className="flex w-full items-center gap-2.5 px-3.5 py-2.5 text-left text-sm outline-offset-[-2px] hover:bg-sunken/60"
        onClick={() => setIsOpen(!isOpen)}
        type="button"
      >
        <StateMark state={state} />
        <span className="flex min-w-0 flex-1 items-baseline gap-2.5">
          <span className="shrink-0 font-mono text-[0.8125rem]">{name}</span>
          <span className="truncate text-ink-soft">{toSummary(part.input)}</span>
        </span>
        <span
          className={`shrink-0 text-xs ${state === 'failed' ? 'text-terracotta' : 'text-ink-soft max-sm:sr-only'}`}
        >
          {LABELS[state]}
        </span>
        <span
          className={`text-ink-soft motion-safe:transition-transform ${isOpen ? 'rotate-180' : ''}`}
        >
          <ChevronIcon />
        </span>
      </button>
      {part.state === 'output-error' && !isOpen ? (
        <p className="px-3.5 pb-2.5 pl-9.5 text-sm text-terracotta">{part.errorText}</p>
      ) : null}
      <div className="fold" data-open={isOpen} id={bodyId}>
        <div>
          <div className="grid gap-3 border-t border-line px-3.5 py-3">
            <Detail label="Input">{toJson(part.input)}</Detail>
            {part.state === 'output-available' ? (
              <Detail label="Output">{toJson(part.output)}</Detail>
            ) : null}
            {part.state === 'output-error' ? <Detail label="Error">{part.errorText}</Detail> : null}
          </div>
        </div>
      </div>
    </div>
  );
}

function Detail({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div>
      <div className="mb-1 text-xs text-ink-soft">{label}</div>
      <ScrollBox className="max-h-64 overflow-auto rounded-lg bg-sunken px-3 py-2" label={label}>
        <pre className="font-mono text-xs leading-relaxed whitespace-pre-wrap wrap-anywhere">
          {children}
        </pre>
      </ScrollBox>
    </div>
  );
}

function StateMark({ state }: { state: CardState }) {
  const tone = {
    preparing: 'text-ink-soft',
    running: 'text-sea',
    done: 'text-olive',
    failed: 'text-terracotta',
    stopped: 'text-ink-soft',
  }[state];
  return (
    <span aria-hidden="true" className={`grid size-3.5 shrink-0 place-items-center ${tone}`}>
      {state === 'done' ? <CheckIcon /> : null}
      {state === 'failed' || state === 'stopped' ? <CrossIcon /> : null}
      {state === 'running' || state === 'preparing' ? (
        <span className="size-2 animate-breathe rounded-full bg-current" />
      ) : null}
    </span>
  );
}

function toCardState(part: ToolPart, isLive: boolean): CardState {
  if (part.state === 'output-available') return 'done';
  if (part.state === 'output-error' || part.state === 'output-denied') return 'failed';
  if (!isLive) return 'stopped';
  return part.state === 'input-streaming' ? 'preparing' : 'running';
}

/** The first text of the input: mostly the query, the path or the command. */
function toSummary(input: unknown): string {
  if (typeof input === 'string') return input;
  const values = input && typeof input === 'object' ? Object.values(input) : [];
  return values.find((value) => typeof value === 'string') ?? '';
}

function toJson(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? '');
}
