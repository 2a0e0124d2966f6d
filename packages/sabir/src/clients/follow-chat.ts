import type { MessageLike } from '../core/message.ts';
import type { ChatSession } from './chat-session.ts';
import type { FollowedTurn } from './follow-feed.ts';

/** A chat on the screen: `ChatStream` is one, and `useFollow` makes one of what `useChat` returns. */
export type FollowedChat<M extends MessageLike> = {
  getSnapshot(): { messages: M[]; status: string };
  setMessages(messages: M[]): void;
  /** Shows the running turn from its start. Resolves when it is over. */
  resume(): Promise<unknown>;
  /** Stops watching its own request. */
  detach(): unknown;
  /** Gives a function that ends it. */
  subscribe(listener: () => void): () => unknown;
};

/** As much of a `ChatSession` as following needs, whatever its messages are called. */
export type FollowSource = Pick<
  ChatSession<MessageLike>,
  'subscribe' | 'history' | 'getFollowed' | 'forgetRequest'
>;

/** A complete answer carries the outcome of its turn, a prompt that waits its place in the queue. */
type WithMetadata = { metadata?: { outcome?: unknown; queue?: unknown } };

/** How often a turn is shown from its start: once, and once more if that broke off. */
const SHOWINGS = 2;
/** A page that has just read a turn may be a frame behind. */
const SETTLE_MS = 50;
const RETRY_MS = 2_000;

/**
 * Keeps a chat on the screen up with its session: a turn that another tab, person or device began is
 * shown as it comes, its prompt first; what a regenerate or an edit replaced goes; and the history is
 * read again whenever the turns alone do not tell what is stored. Gives a function that ends it.
 *
 * The chat has to send its requests with `session.fetch`: then a turn that it asked for itself is not
 * shown twice, and one that others began needs no connection of its own.
 *
 * @param onHistory Called whenever the history has been read; the screen has it then.
 * @example
 * const session = new ChatSession({ api: '/api/chat', id: 'c1' });
 * const chat = new ChatStream({ api: '/api/chat', id: 'c1', fetch: session.fetch });
 * const close = session.open();
 * const leave = followChat(session, chat);
 */
export function followChat<M extends MessageLike>(
  source: FollowSource,
  chat: FollowedChat<M>,
  onHistory?: () => void,
): () => void {
  const session = source as Pick<ChatSession<M>, keyof FollowSource>;
  /** The version of the history that is on the screen. */
  let shownHistory: string | undefined;
  let lastTurn: FollowedTurn<M> | undefined;
  /** The answers of turns before that, which the screen may not have got to their end. */
  const past: string[] = [];
  let showings = 0;
  let isWorking = false;
  let isAgain = false;
  let hasLeft = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const isIdle = () => {
    const { status } = chat.getSnapshot();
    return (status === 'ready' || status === 'error') && !session.getFollowed().isPending;
  };

  const readHistory = async (version: string | undefined) => {
    const history = await session.history();
    if (hasLeft || !isIdle()) return;
    shownHistory = version;
    if (history) chat.setMessages(withOwn(history));
    onHistory?.();
  };

  /** The history, and what only this page has: a prompt that did not reach the server, an answer so far. */
  const withOwn = (history: M[]): M[] => {
    const { messages } = chat.getSnapshot();
    const { turn, isUnsent } = session.getFollowed();
    const last = messages.at(-1);
    // A prompt that waits is shown when its turn begins; until then it is in the session's queue.
    const begun = history.filter((message) => !(message as WithMetadata).metadata?.queue);
    const own = messages.filter(
      (message) =>
        !begun.some(({ id }) => id === message.id) &&
        (message.id === turn?.opening.messageId || (isUnsent && message === last)),
    );
    return [...begun, ...own];
  };

  const isToBeShown = (turn: FollowedTurn<M>): boolean => {
    const { messages, status } = chat.getSnapshot();
    if (isWhole(messages, turn.opening.messageId)) return false;
    // The question that this page's stream ended at was answered elsewhere.
    if (turn.pausedAt !== undefined && turn.seq > turn.pausedAt) return true;
    if (showings >= SHOWINGS) return false;
    // One that this page reads by itself, unless that broke off. One that the person has left is
    // shown when it is over.
    return turn.isOver || status === 'error' || !session.getFollowed().isRead;
  };

  const show = async (turn: FollowedTurn<M>) => {
    showings++;
    const { messages, status } = chat.getSnapshot();
    const { replaces, message, messageId } = turn.opening;
    if (status === 'error') {
      turn.offer = 'nothing';
      await chat.resume();
    }
    const at = messages.findIndex(({ id }) => id === replaces);
    const kept = (at < 0 ? messages : messages.slice(0, at)).filter(({ id }) => id !== messageId);
    // A regenerated answer brings its prompt again, which may have another id.
    if (message && messages[at]?.role === 'assistant' && kept.at(-1)?.role === 'user') kept.pop();
    // The server may know the prompt of this page by another id.
    const isOwn = session.getFollowed().isRead && kept.at(-1)?.role === 'user';
    if (message && !isOwn && !kept.some(({ id }) => id === message.id)) kept.push(message);
    chat.setMessages(kept);
    turn.offer = 'turn';
    await chat.resume();
  };

  /** A turn that begins brings its version of the history with it, whatever the screen does. */
  const note = () => {
    const { turn } = session.getFollowed();
    if (!turn || turn === lastTurn) return;
    if (lastTurn) past.push(lastTurn.opening.messageId);
    if (shownHistory === turn.before) shownHistory = turn.history;
    lastTurn = turn;
    showings = 0;
  };

  /** One thing that the screen is behind with. True if there was one. */
  const step = async (): Promise<boolean> => {
    // What the person does in this very moment comes first.
    await new Promise((resolve) =>
      setTimeout(resolve, session.getFollowed().isRead ? SETTLE_MS : 0),
    );
    const { history, turn } = session.getFollowed();
    if (hasLeft || history === undefined || !isIdle()) return false;
    if (turn?.isLost && showings < SHOWINGS) {
      showings = SHOWINGS;
      past.push(turn.opening.messageId);
    }
    const { messages } = chat.getSnapshot();
    // A turn that cannot be shown from here any more is in the history.
    if (past.splice(0).some((messageId) => !isWhole(messages, messageId))) shownHistory = undefined;
    if (history !== shownHistory) {
      await readHistory(history);
      return true;
    }
    if (!turn || !isToBeShown(turn)) return false;
    await show(turn);
    return true;
  };

  /**
   * Two people asked at the same moment, and the other one was faster: the page stops waiting for its own answer, so that it
   * can show the other's. Its prompt is in the queue, and is shown when its turn begins.
   */
  const leaveQueue = async () => {
    const { turn, isRead, waiting } = session.getFollowed();
    const { status } = chat.getSnapshot();
    const isBusy = status === 'submitted' || status === 'streaming';
    if (!waiting || !isBusy || !turn || turn.isOver || isRead) return;
    session.forgetRequest(waiting.turnId);
    await chat.detach();
    if (hasLeft) return;
    const { messages } = chat.getSnapshot();
    chat.setMessages(messages.filter(({ id }) => id !== waiting.message.id));
    // A prompt that regenerates or edits has cut the screen.
    shownHistory = undefined;
  };

  const work = async () => {
    note();
    await leaveQueue();
    if (!isIdle()) return;
    if (isWorking) {
      isAgain = true;
      return;
    }
    clearTimeout(timer);
    isWorking = true;
    try {
      do isAgain = false;
      while ((await step()) || isAgain);
    } catch {
      // The connection is gone: once more in a moment.
      if (!hasLeft) timer = setTimeout(work, RETRY_MS);
    }
    isWorking = false;
  };

  const unsubscribe = [session.subscribe(work), chat.subscribe(work)];
  void work();
  return () => {
    hasLeft = true;
    clearTimeout(timer);
    for (const end of unsubscribe) end();
  };
}

function isWhole<M extends MessageLike>(messages: M[], messageId: string): boolean {
  const message = messages.find(({ id }) => id === messageId);
  return Boolean((message as WithMetadata | undefined)?.metadata?.outcome);
}
