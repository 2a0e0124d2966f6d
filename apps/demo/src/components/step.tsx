import type { ReactNode } from 'react';
import type { Step as StepData } from '../to-steps.ts';
import { CheckIcon, CrossIcon } from './icons.tsx';

type Look = 'running' | 'complete' | 'skipped' | 'error' | 'stopped';

const LABELS: Record<Look, string> = {
  running: 'working',
  complete: 'done',
  skipped: 'skipped',
  error: 'failed',
  stopped: 'stopped',
};

/** One node of the flow: a port of call on the route that runs down the answer. */
export function Step({
  node,
  isLive,
  isLast,
  children,
}: {
  node: StepData['node'];
  isLive: boolean;
  isLast: boolean;
  children: ReactNode;
}) {
  const look: Look =
    node?.status === 'running' && !isLive ? 'stopped' : (node?.status ?? 'complete');
  return (
    <section
      aria-label={node ? toName(node.id) : undefined}
      className={`relative animate-arrive pl-7 sm:pl-9 ${isLast ? '' : 'pb-9'}`}
      data-node={node?.id}
      data-status={node ? look : undefined}
    >
      {node ? (
        <>
          <Port look={look} />
          {isLast ? null : <Route />}
          <h3 className="mb-3 flex items-baseline gap-2.5">
            <span className="font-serif text-lg leading-6 font-semibold">{toName(node.id)}</span>
            <span className={`text-xs ${look === 'error' ? 'text-terracotta' : 'text-ink-soft'}`}>
              {LABELS[look]}
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
    <div className="relative pl-7 sm:pl-9">
      <Port look="running" />
      <p className="text-sm leading-6 text-ink-soft">Setting out…</p>
    </div>
  );
}

function Port({ look }: { look: Look }) {
  const tone = {
    running: 'border-sea text-sea',
    complete: 'border-sea bg-sea text-on-sea',
    skipped: 'border-line-strong text-ink-soft',
    error: 'border-terracotta bg-terracotta text-paper',
    stopped: 'border-line-strong text-ink-soft',
  }[look];
  return (
    <span
      aria-hidden="true"
      className={`absolute top-0.5 left-0 grid size-5 place-items-center rounded-full border-[1.5px] ${tone}`}
    >
      {look === 'complete' ? <CheckIcon /> : null}
      {look === 'error' ? <CrossIcon /> : null}
      {look === 'running' ? <span className="size-2 animate-breathe rounded-full bg-sea" /> : null}
    </span>
  );
}

/** A dashed line as on a sea chart, down to the next port. */
function Route() {
  return (
    <span
      aria-hidden="true"
      className="absolute top-8 bottom-1 left-[9.5px] border-l-[1.5px] border-dashed border-line-strong/50"
    />
  );
}

function toName(nodeId: string): string {
  const words = nodeId.replace(/[-_]+/g, ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
