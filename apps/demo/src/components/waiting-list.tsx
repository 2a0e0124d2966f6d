import type { QueuedTurn } from 'sabir/client';
import { type ChatMessage, toText } from '../chat-message.ts';
import { FileList } from './file-list.tsx';

type WaitingListProps = {
  queue: readonly QueuedTurn<ChatMessage>[];
  /** The id of the person on this page. */
  me: string | undefined;
  /** Absent for a person who may only watch. */
  onTakeBack: ((turnId: string) => void) | undefined;
  /** There is nobody to tell. */
  isCutOff: boolean;
  /** What was asked and did not get into the list. */
  refused: string | undefined;
  onRetry(): void;
};

/** What was asked while an answer was being written, in any window: the same list in all of them. */
export function WaitingList({ refused, onRetry, ...list }: WaitingListProps) {
  return (
    <>
      {list.queue.length > 0 ? <Places {...list} /> : null}
      {refused === undefined ? null : (
        <div className="grid justify-items-end gap-1 text-sm" role="alert">
          <p className="max-w-[85%] wrap-anywhere text-terracotta">
            “{refused}” did not arrive.{' '}
            <button className="underline underline-offset-3" onClick={onRetry} type="button">
              Try again
            </button>
          </p>
        </div>
      )}
    </>
  );
}

function Places({
  queue,
  me,
  onTakeBack,
  isCutOff,
}: Omit<WaitingListProps, 'refused' | 'onRetry'>) {
  return (
    <ol aria-label="Waiting" className="grid gap-3" data-queue>
      {queue.map(({ turnId, message, author }, index) => (
        <li className="grid animate-arrive justify-items-end gap-1" key={turnId}>
          <FileList files={message.parts.filter((part) => part.type === 'file')} />
          {toText(message) ? (
            <p className="max-w-[85%] rounded-2xl rounded-br-md border border-dashed border-line-strong/70 px-4 py-2.5 whitespace-pre-wrap wrap-anywhere text-ink-soft">
              {toText(message)}
            </p>
          ) : null}
          <p className="flex items-baseline gap-2.5 pr-1 text-xs text-ink-soft">
            {[author?.id !== me && author?.name, toPlace(index)].filter(Boolean).join(' · ')}
            {onTakeBack ? (
              <button
                aria-label={`Take back: ${toText(message).slice(0, 60)}`}
                className="text-sea underline decoration-sea/35 underline-offset-3 hover:decoration-sea disabled:text-ink-soft disabled:no-underline"
                disabled={isCutOff}
                onClick={() => onTakeBack(turnId)}
                type="button"
              >
                Take back
              </button>
            ) : null}
          </p>
        </li>
      ))}
    </ol>
  );
}

const ordinals = new Intl.PluralRules('en', { type: 'ordinal' });
const ENDINGS: Record<string, string> = { one: 'st', two: 'nd', few: 'rd' };

function toPlace(index: number): string {
  const place = index + 1;
  if (place === 1) return 'Next';
  return `${place}${ENDINGS[ordinals.select(place)] ?? 'th'} in line`;
}
