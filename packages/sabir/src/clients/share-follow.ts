/**
 * Tabs of one browser that follow the same chat share one connection. The tab that holds the lock
 * has the connection and passes on what it reads; the others wait for the lock. A tab that closes, or that the server
 * refuses, releases it, and the next one connects from its own cursor. A shown tab takes it from a hidden one, whose
 * timers the browser slows down.
 */
import { createId } from '../core/id.ts';
import type { SseFrame } from '../core/sse.ts';
import type { FollowSink, Link } from './follow-connection.ts';
import { onShown, untilShown } from './page-events.ts';

type Message =
  /** A tab has come, or may have missed something. */
  { type: 'hello'; from: string } | FromLeader;

/** From the tab that has the connection. */
type FromLeader = { isHidden: boolean } & (
  | { type: 'frames'; frames: SseFrame[] }
  | { type: 'link'; link: Link }
  /** For one tab: all there is. */
  | { type: 'welcome'; to: string; link: Link; frames: SseFrame[] }
);

export type ShareOptions = {
  /** Tabs with the same name share. */
  name: string;
  /** A tab that holds the lock and sends nothing for this long is suspended: the next tab steals its lock. */
  silenceMs: number;
  /** Reads from the server until the signal aborts or the server refuses. True where it refused. */
  read(sink: FollowSink, signal: AbortSignal): Promise<boolean>;
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
  let isStealing = false;
  /** The server refused this tab, which has not been shown again since. */
  let isRefused = false;
  const isHidden = () => Boolean(globalThis.document?.hidden);

  /** Takes the lock from a tab that does not answer in time. A hidden tab can wait: it asks when it is shown. */
  const expectWithin = (ms: number) => {
    clearTimeout(timer);
    if (!leading && ms) timer = setTimeout(() => isHidden() || void hold(true), ms);
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

  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.type === 'hello') {
      if (leading) {
        const all = { link: toPlain(link), frames: getFrames() };
        post({ type: 'welcome', to: data.from, ...all, isHidden: isHidden() });
      }
      return;
    }
    if (leading || (data.type === 'welcome' && data.to !== self)) return;
    expectWithin(silenceMs && silenceMs + ANSWER_MS);
    if ('link' in data) show(data.link);
    if ('frames' in data) sink.onFrames(data.frames);
    if (data.isHidden && !isHidden() && !isStealing && !isRefused) void hold(true);
  };

  async function lead(own: AbortController): Promise<boolean> {
    if (own.signal.aborted) return false;
    leading = own;
    isStealing = false;
    clearTimeout(timer);
    return read(
      {
        onFrames(frames) {
          if (leading !== own) return;
          post({ type: 'frames', frames, isHidden: isHidden() });
          sink.onFrames(frames);
        },
        onLink(next) {
          if (leading !== own) return;
          show(next);
          // The server may accept the headers of another tab.
          if (next.status !== 'refused')
            post({ type: 'link', link: toPlain(next), isHidden: isHidden() });
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
    isStealing = steal;
    try {
      const request = steal ? { steal } : { signal: own.signal };
      isRefused = await navigator.locks.request(name, request, () => lead(own));
    } catch (error) {
      // Another tab has taken the lock, or this one left while it waited. Where locks are forbidden, as in
      // some frames, this one has a connection of its own.
      if ((error as Error).name !== 'AbortError') isRefused = await lead(own);
    }
    own.abort();
    signal.removeEventListener('abort', leave);
    if (leading !== own) return;
    leading = undefined;
    if (signal.aborted) return;
    if (isRefused) await untilShown(signal);
    else expectWithin(silenceMs);
    isRefused = false;
    if (!signal.aborted && !leading) void hold(false);
  }

  onShown(signal, ask);
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
