/**
 * Tabs of one browser that follow the same chat share one connection. The tab that holds the lock
 * has the connection and passes on what it reads; the others wait for the lock. A tab that closes
 * releases it, and the next one connects from its own cursor.
 */
import { createId } from '../core/id.ts';
import type { SseFrame } from '../core/sse.ts';
import type { FollowSink, Link } from './follow-connection.ts';

type Message =
  /** A tab has come, or may have missed something. */
  | { type: 'hello'; from: string }
  /** For that tab: all there is. */
  | { type: 'welcome'; to: string; link: Link; frames: SseFrame[] }
  | { type: 'frames'; frames: SseFrame[] }
  | { type: 'link'; link: Link };

export type ShareOptions = {
  /** Tabs with the same name share. */
  name: string;
  /** A tab that holds the lock and sends nothing for this long is suspended: the next tab steals its lock. */
  silenceMs: number;
  /** Reads from the server until the signal aborts. */
  read(sink: FollowSink, signal: AbortSignal): Promise<void>;
  /** What a tab that comes late needs. */
  getFrames(): SseFrame[];
  sink: FollowSink;
  signal: AbortSignal;
};

/** How long the tab with the connection may take to answer a tab that asks. */
const ANSWER_MS = 1_000;

/** Whether this browser can share: both need a page that was served safely. */
export function canShare(): boolean {
  return Boolean(globalThis.navigator?.locks && globalThis.BroadcastChannel);
}

export async function shareFollow(options: ShareOptions): Promise<void> {
  const { name, silenceMs, read, getFrames, sink, signal } = options;
  const self = createId();
  const channel = new BroadcastChannel(name);
  const post = (message: Message) => channel.postMessage(message);
  /** Set while this tab has the connection. */
  let leading: AbortController | undefined;
  /** The last request for the lock; at most one waits. */
  let latest: AbortController | undefined;
  let link: Link = { status: 'connecting' };
  let timer: ReturnType<typeof setTimeout> | undefined;

  /** Takes the lock from a tab that does not answer in time. */
  const expectWithin = (ms: number) => {
    clearTimeout(timer);
    if (!leading && ms) timer = setTimeout(() => void hold(true), ms);
  };

  const show = (next: Link) => {
    link = next;
    sink.onLink(next);
  };

  const ask = () => {
    if (leading) return;
    post({ type: 'hello', from: self });
    expectWithin(ANSWER_MS);
  };
  const askIfShown = () => {
    if (!globalThis.document?.hidden) ask();
  };

  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.type === 'hello') {
      if (leading)
        post({ type: 'welcome', to: data.from, link: toPlain(link), frames: getFrames() });
      return;
    }
    if (leading || (data.type === 'welcome' && data.to !== self)) return;
    expectWithin(silenceMs && silenceMs + ANSWER_MS);
    if ('link' in data) show(data.link);
    if ('frames' in data) sink.onFrames(data.frames);
  };

  async function lead(own: AbortController): Promise<void> {
    if (own.signal.aborted) return;
    leading = own;
    clearTimeout(timer);
    await read(
      {
        onFrames(frames) {
          if (leading !== own) return;
          post({ type: 'frames', frames });
          sink.onFrames(frames);
        },
        onLink(next) {
          if (leading !== own) return;
          show(next);
          post({ type: 'link', link: toPlain(next) });
        },
      },
      own.signal,
    );
  }

  /** Until another tab takes the lock, or this one leaves. */
  async function hold(steal: boolean): Promise<void> {
    const own = new AbortController();
    const leave = () => own.abort();
    signal.addEventListener('abort', leave);
    latest?.abort();
    latest = own;
    try {
      const request = steal ? { steal } : { signal: own.signal };
      await navigator.locks.request(name, request, () => lead(own));
    } catch (error) {
      // Another tab has taken the lock, or this one left while it waited. Where locks are forbidden, as in
      // some frames, this one has a connection of its own.
      if ((error as Error).name !== 'AbortError') await lead(own);
    }
    own.abort();
    signal.removeEventListener('abort', leave);
    if (leading !== own) return;
    leading = undefined;
    if (signal.aborted) return;
    void hold(false);
    expectWithin(silenceMs);
  }

  for (const type of ['online', 'pageshow', 'visibilitychange'])
    globalThis.addEventListener?.(type, askIfShown, { signal });
  void hold(false);
  ask();
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  clearTimeout(timer);
  channel.close();
}

/** An error's own fields do not survive being sent. */
function toPlain({ status, error }: Link): Link {
  return error
    ? { status, error: { ...error, name: error.name, message: error.message } }
    : { status };
}
