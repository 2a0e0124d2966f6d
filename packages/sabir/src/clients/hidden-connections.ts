/**
 * HTTP/1.1 allows a browser six connections to one host, and a follow stream keeps one for as long as its tab is open. A
 * shown tab may always connect. All hidden tabs together keep three connections; the others connect again, from their
 * cursor, when they are shown.
 */
import { childOf, untilShown } from './page-events.ts';

const HIDDEN_CONNECTIONS = 3;
/** How long a tab that becomes hidden waits for one of them. */
const TAKE_MS = 100;

type Release = () => void;

/** Waits until this tab may connect, then runs `read`. Its signal aborts when the tab may not stay connected. */
export async function readWhileAllowed<T>(
  signal: AbortSignal,
  read: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  const ending = childOf(signal);
  const reading = ending.signal;
  let slot = isHidden() ? await untilAllowed(signal) : undefined;
  let isTaking = false;

  const release = () => {
    slot?.();
    slot = undefined;
  };

  const onChange = async () => {
    if (!isHidden()) release();
    if (!isHidden() || slot || isTaking) return;
    isTaking = true;
    slot = await takeSlot(reading, TAKE_MS);
    isTaking = false;
    if (!isHidden() || reading.aborted) release();
    else if (!slot) ending.abort();
  };

  globalThis.addEventListener?.('visibilitychange', onChange, { signal: reading });
  try {
    return signal.aborted ? undefined : await read(reading);
  } finally {
    ending.abort();
    release();
  }
}

/** Until one of the connections of hidden tabs is free, or the page is shown and needs none. */
async function untilAllowed(signal: AbortSignal): Promise<Release | undefined> {
  const waiting = childOf(signal);
  void untilShown(waiting.signal).then(() => waiting.abort());
  const slot = await takeSlot(waiting.signal);
  waiting.abort();
  return slot;
}

/** Gives what releases the slot; undefined where the time is over, or the signal aborts, first. */
function takeSlot(signal: AbortSignal, ms?: number): Promise<Release | undefined> {
  return new Promise((resolve) => {
    const waiting = childOf(signal);
    const timer = ms === undefined ? undefined : setTimeout(() => waiting.abort(), ms);
    let isTaken = false;
    const take = () => {
      if (isTaken) return undefined;
      isTaken = true;
      waiting.abort();
      return new Promise<void>((release) => resolve(release));
    };
    const requests = Array.from({ length: HIDDEN_CONNECTIONS }, (_, slot) =>
      navigator.locks
        .request(`sabir:hidden:${slot}`, { signal: waiting.signal }, take)
        // Where locks are forbidden, as in some frames, nothing limits the tab.
        .catch(() => waiting.signal.aborted || resolve(() => undefined)),
    );
    void Promise.all(requests).then(() => {
      clearTimeout(timer);
      resolve(undefined);
    });
  });
}

/** Also where the page cannot know of other tabs. */
function isHidden(): boolean {
  return Boolean(globalThis.document?.hidden && globalThis.navigator?.locks);
}
