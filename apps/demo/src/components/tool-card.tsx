import { getToolName } from 'ai';
import { type ReactNode, useId, useRef, useState } from 'react';
import type { AnswerQuestion } from '../chat.ts';
import type { Question } from '../chat-message.ts';
import { TOOL_LABELS, type ToolPart, type ToolState, toToolState } from '../tool-state.ts';
import { ApprovalForm } from './approval.tsx';
import { ChoiceForm, QuestionText } from './choice-form.tsx';
import { CheckIcon, ChevronIcon, CrossIcon } from './icons.tsx';
import { ScrollBox } from './scroll-box.tsx';

type ToolCardProps = {
  part: ToolPart;
  isLive: boolean;
  /** What somebody was asked about this call. */
  question?: Question | undefined;
  /** The answer is one of its options; else the call is approved or denied. */
  isChoice: boolean;
  onAnswer?: AnswerQuestion | undefined;
};

/**
 * One call of a tool: a line that says what and how it went, and everything else behind a click. A
 * call that waits is open: nobody should allow what they have not seen.
 */
export function ToolCard({ part, isLive, question, isChoice, onAnswer }: ToolCardProps) {
  const [chosen, setChosen] = useState<boolean>();
  const bodyId = useId();
  const lineRef = useRef<HTMLButtonElement>(null);
  const state = toToolState(part, question, isLive);
  const isWaiting = state === 'waiting';
  const isOpen = chosen ?? isWaiting;
  const name = getToolName(part);
  const Form = isChoice ? ChoiceForm : ApprovalForm;
  return (
    <div
      className={`overflow-hidden rounded-xl border bg-raised ${isWaiting ? 'border-terracotta/55' : 'border-line'}`}
      data-part="tool"
      data-state={state}
    >
      <button
        aria-controls={bodyId}
        aria-expanded={isOpen}
        className="flex w-full items-center gap-2.5 px-3.5 py-2.5 text-left text-sm outline-offset-[-2px] hover:bg-sunken/60"
        onClick={() => setChosen(!isOpen)}
        ref={lineRef}
        type="button"
      >
        <StateMark state={state} />
        <span className="flex min-w-0 flex-1 items-baseline gap-2.5">
          <span className="shrink-0 font-mono text-[0.8125rem]">{name}</span>
          <span className="truncate text-ink-soft">{toSummary(part.input)}</span>
        </span>
        <span
          className={`shrink-0 text-xs ${state === 'failed' || isWaiting ? 'text-terracotta' : 'text-ink-soft max-sm:sr-only'}`}
        >
          {onAnswer || !isWaiting ? toLabel(state, question !== undefined && !isChoice) : 'Waiting'}
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
      {question && onAnswer ? (
        <Form
          isOpen={isWaiting}
          onAnswer={onAnswer}
          onSent={() => lineRef.current?.focus()}
          question={question}
          toolName={name}
        />
      ) : null}
      {question && !onAnswer ? <QuestionText question={question} /> : null}
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

const TONES: Partial<Record<ToolState, string>> = {
  running: 'text-sea',
  waiting: 'text-terracotta',
  done: 'text-olive',
  failed: 'text-terracotta',
};

function StateMark({ state }: { state: ToolState }) {
  const isGoing = state === 'preparing' || state === 'running' || state === 'waiting';
  return (
    <span
      aria-hidden="true"
      className={`grid size-3.5 shrink-0 place-items-center ${TONES[state] ?? 'text-ink-soft'}`}
    >
      {state === 'done' ? <CheckIcon /> : null}
      {isGoing ? <span className="size-2 animate-breathe rounded-full bg-current" /> : null}
      {isGoing || state === 'done' ? null : <CrossIcon />}
    </span>
  );
}

function toLabel(state: ToolState, wasAsked: boolean): string {
  const isApproved = wasAsked && (state === 'running' || state === 'done');
  return isApproved ? `Approved, ${TOOL_LABELS[state].toLowerCase()}` : TOOL_LABELS[state];
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
