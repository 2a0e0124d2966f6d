import type { TurnNotice } from '../turn-notice.ts';
import { RetryIcon } from './icons.tsx';

const TONES: Record<TurnNotice['kind'], string> = {
  failed: 'border-terracotta/45 bg-terracotta-wash',
  interrupted: 'border-line bg-sunken',
  stopped: 'border-line bg-sunken',
};

type TurnNoticeBannerProps = {
  notice: TurnNotice;
  /** Absent for a person who may only watch. */
  onRetry?: (() => void) | undefined;
};

/** Says in words why an answer is not complete, and offers the way out. */
export function TurnNoticeBanner({ notice, onRetry }: TurnNoticeBannerProps) {
  return (
    <div
      className={`flex animate-arrive flex-wrap items-center justify-between gap-x-6 gap-y-3 rounded-xl border px-4 py-3 ${TONES[notice.kind]}`}
      data-notice={notice.kind}
      role={notice.kind === 'failed' ? 'alert' : 'note'}
    >
      <div className="min-w-40 flex-1 text-sm leading-relaxed">
        <p className="font-semibold">{notice.title}</p>
        {notice.text ? <p className="text-ink-soft">{notice.text}</p> : null}
      </div>
      {onRetry ? (
        <button
          className="flex items-center gap-2 rounded-full border border-line-strong/60 bg-raised px-3.5 py-1.5 text-sm hover:border-ink-soft"
          onClick={onRetry}
          type="button"
        >
          <RetryIcon />
          {notice.kind === 'stopped' ? 'Start over' : 'Retry'}
        </button>
      ) : null}
    </div>
  );
}
