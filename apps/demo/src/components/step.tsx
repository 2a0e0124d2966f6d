import type { ReactNode } from 'react';
import type { Outcome } from '../chat-message.ts';
import type { Step as StepData } from '../to-steps.ts';
import { CheckIcon, CrossIcon } from './icons.tsx';

type Look = 'running' | 'waiting' | 'complete' | 'skipped' | 'error' | 'stopped';

const LABELS: Record<Look, string> = {
  running: 'working',
  waiting: 'waiting for you',
  complete: 'done',
  skipped: 'skipped',
  error: 'failed',
  stopped: 'stopped',
};

type Situation = {
  isLive: boolean;
  isLast: boolean;
  isWaiting: boolean;
  outcome: Outcome | undefined;
};

/** A node says how it fares; an agent works until it hands over or the answer ends. */
export function toStepLook({ node, agent }: StepData, situation: Situation): Look {
  const { isLive, isLast, isWaiting, outcome } = situation;
  if (node) return node.status === 'running' && !isLive ? 'stopped' : node.status;
  if (!agent || !isLast || (!isLive && outcome === 'finished')) return 'complete';
  if (isLive) return isWaiting ? 'waiting' : 'running';
  return outcome === 'failed' ? 'error' : 'stopped';
}

type StepProps = { step: StepData; look: Look; isLast: boolean; children: ReactNode };

/** One node of the flow, or one agent: a port of call on the route that runs down the answer. */
export function Step({ step: { node, agent }, look, isLast, children }: StepProps) {
  const name = agent?.name ?? (node && toName(node.id));
  const label = agent && !isLast ? 'handed over' : LABELS[look];
  const isUrgent = look === 'error' || look === 'waiting';
  return (
    <section
      aria-label={name}
      className={`relative animate-arrive ${isLast ? '' : name ? 'pb-9' : 'pb-3.5'}`}
      data-agent={agent?.name}
      data-node={node?.id}
      data-status={name ? look : undefined}
    >
      {name ? (
        <>
          <Port look={look} />
          {isLast ? null : <Route />}
          <h3 className="mb-3 flex flex-wrap items-baseline gap-x-2.5">
            <span className="font-serif text-lg leading-6 font-semibold">
              {agent?.from ? (
                <span className="font-normal text-ink-soft">
                  {agent.from} <span aria-hidden="true">→</span>
                  <span className="sr-only">handed over to</span>{' '}
                </span>
              ) : null}
              {name}
            </span>
            <span className={`text-xs ${isUrgent ? 'text-terracotta' : 'text-ink-soft'}`}>
              {label}
            </span>
          </h3>
        </>
      ) : null}
      <div className="grid gap-3.5 *:min-w-0 [&>[data-part=tool]+[data-part=tool]]:-mt-1.5">
        {children}
      </div>
    </section>
  );
}

/** Holds the place of the first step until it arrives, so that nothing moves when it does. */
export function PendingStep() {
  return (
    <div className="relative">
      <Port look="running" />
      <p className="text-sm leading-6 text-ink-soft">Setting out…</p>
    </div>
  );
}

function Port({ look }: { look: Look }) {
  const tone = {
    running: 'border-sea text-sea',
    waiting: 'border-terracotta text-terracotta',
    complete: 'border-sea bg-sea text-on-sea',
    skipped: 'border-line-strong text-ink-soft',
    error: 'border-terracotta bg-terracotta text-paper',
    stopped: 'border-line-strong text-ink-soft',
  }[look];
  return (
    <span
      aria-hidden="true"
      className={`absolute top-0.5 -left-7 grid size-5 sm:-left-9 place-items-center rounded-full border-[1.5px] ${tone}`}
    >
      {look === 'complete' ? <CheckIcon /> : null}
      {look === 'error' ? <CrossIcon /> : null}
      {look === 'running' || look === 'waiting' ? (
        <span className="size-2 animate-breathe rounded-full bg-current" />
      ) : null}
    </span>
  );
}

/** A dashed line as on a sea chart, down to the next port. */
function Route() {
  return (
    <span
      aria-hidden="true"
      className="absolute top-8 bottom-1 left-[calc(9.5px-1.75rem)] sm:left-[calc(9.5px-2.25rem)] border-l-[1.5px] border-dashed border-line-strong/50"
    />
  );
}

function toName(nodeId: string): string {
  const words = nodeId.replace(/[-_]+/g, ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
