/** Somebody who watches a turn to its end, whatever happens to their connections. */
import type { UIMessage } from '../../src/core/message.ts';
import { openPage, type Page } from './pages.ts';
import type { PlannedViewer } from './plan.ts';

export type ViewerOptions = {
  name: string;
  plan: PlannedViewer;
  url: string;
  sessionId: string;
  chatId: string;
  /** What this one sends, if it is the one. */
  message?: UIMessage;
  /** Resolves as soon as the agent has come so far, and when the turn is over. */
  until(progress: number): Promise<void>;
  /** The agent has nothing more to say. */
  isSaid(): boolean;
  tell(line: string): void;
  onTurnId(turnId: string): void;
  /** The run is over, or this viewer hangs. */
  signal: AbortSignal;
};

export type Seen = {
  name: string;
  kind: PlannedViewer['kind'];
  message: UIMessage;
  /** Told as it was said, or found in the history by somebody who came when it was over. */
  from: 'stream' | 'history';
  /** How often it took up the turn from a page of its own that had failed it. */
  reloads: number;
};

/** Between one look at the page and the next: longer each time, up to a second. */
const RELOAD_MS = 100;
const MOST_RELOAD_MS = 1_000;

export async function watchTurn(options: ViewerOptions): Promise<Seen> {
  const { name, plan, message, sessionId, signal, tell } = options;
  const { kind } = plan;
  const fetch = createFetch(options);
  let reloads = 0;
  let hasLeft = false;
  /** The server has not said that it has the message. */
  const mustSend = message !== undefined;
  if (!message) await options.until(plan.joinAt);
  for (let visit = 0; !signal.aborted; visit++) {
    if (visit > 0) await pause(Math.min(RELOAD_MS * visit, MOST_RELOAD_MS), signal);
    const isNew = mustSend && visit === 0;
    const history = isNew ? [] : await readHistory();
    if (!history || signal.aborted) continue;
    const isKnown = history.some(({ role }) => role === 'user');
    const held = history.findLast(({ role }) => role === 'assistant');
    if (held) tell(`${name} has an answer in the history: ${JSON.stringify(held).length}`);
    const page = await openPage(kind, { ...options, fetch, messages: history });
    const stopLeaving = planLeave(page);
    signal.addEventListener('abort', () => void page.leave(), { once: true });
    if (mustSend && !isKnown && message) {
      tell(`${name} sends`);
      await page.send(message);
    } else {
      await page.resume();
    }
    const isLeaving = stopLeaving();
    const answer = page.messages().findLast(({ role }) => role === 'assistant');
    const outcome = outcomeOf(answer);
    if (isLeaving) {
      tell(`${name} left`);
      hasLeft = true;
      await pause(plan.leave?.awayMs ?? 0, signal);
      continue;
    }
    const before = history.find(({ id }) => id === answer?.id);
    const isAsBefore = JSON.stringify(before) === JSON.stringify(answer);
    if (answer && outcome && !isAsBefore) {
      tell(`${name} has it: ${outcome}${before ? ', and had some of it from the history' : ''}`);
      return { name, kind, message: answer, from: 'stream', reloads };
    }
    if (answer && isAsBefore && options.isSaid()) {
      tell(`${name} found it in the history`);
      return { name, kind, message: answer, from: 'history', reloads };
    }
    const error = page.error();
    if (error !== undefined || answer) reloads++;
    tell(`${name} reloads: ${error ?? (answer ? 'broken off' : 'nothing there')}`);
  }
  throw new Error(`${name} was left hanging`);

  function planLeave(page: Page): () => boolean {
    let isLeaving = false;
    let isOver = false;
    if (plan.leave && !hasLeft) {
      void options.until(plan.leave.at).then(() => {
        if (isOver) return;
        isLeaving = true;
        void page.leave();
      });
    }
    return () => {
      isOver = true;
      return isLeaving;
    };
  }

  async function readHistory(): Promise<UIMessage[] | undefined> {
    try {
      const response = await fetch(`${options.url}/api/sessions/${sessionId}/messages`, { signal });
      if (response.ok) return (await response.json()) as UIMessage[];
      await response.body?.cancel();
    } catch {
      // Asked again in a moment.
    }
    return undefined;
  }
}

/** Says whose request it is, and takes a new connection for each. */
function createFetch({ name, tell, onTurnId }: ViewerOptions): typeof globalThis.fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('connection', 'close');
    headers.set('x-viewer', name);
    const { method = 'GET' } = init ?? {};
    const what = `${method} ${new URL(String(input)).pathname.split('/').slice(4).join('/')}`;
    try {
      const response = await fetch(input, { ...init, headers });
      const turnId = response.headers.get('x-sabir-turn');
      const cursor = headers.get('last-event-id');
      tell(`${name} ${what}${cursor ? ` after ${cursor.slice(-6)}` : ''}: ${response.status}`);
      if (turnId) onTurnId(turnId);
      return response;
    } catch (error) {
      const { cause, message } = error as Error & { cause?: { code?: string } };
      tell(`${name} ${what}: ${cause?.code ?? message}`);
      throw error;
    }
  };
}

export function outcomeOf(message: UIMessage | undefined): string | undefined {
  const { outcome } = (message?.metadata ?? {}) as { outcome?: unknown };
  return typeof outcome === 'string' ? outcome : undefined;
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}
