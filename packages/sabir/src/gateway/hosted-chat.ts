import type { UIMessage } from '../core/message.ts';
import {
  channelKeyOf,
  type PromptInfo,
  type QueuedPrompt,
  type Session,
  type SessionNotice,
  type Sessions,
  toUIMessage,
  toUserMessage,
  userMessageIdOf,
} from '../sessions/index.ts';
import type { Place } from './chat-route.ts';
import type { Author, ChatEvents, ChatWatch } from './chat-watch.ts';

/** Followers are sent the queue again and again. Past so much, only how a prompt begins. */
const QUEUE_BYTES = 64_000;
/** So many people are named. */
const MOST_PEOPLE = 100;

/** Watches a conversation of a session in this process. */
export function watchHostedChat(
  sessions: Sessions,
  { sessionId, logChat }: Pick<Place, 'sessionId' | 'logChat'>,
  on: ChatEvents,
): ChatWatch {
  const { session, release } = sessions.hold(sessionId);
  const unsubscribe = session.subscribe((notice: SessionNotice) => {
    if (notice.type === 'event') on.event(notice.event);
    // Of a replacement that was withdrawn, no turn will tell.
    else if (notice.type === 'restored') on.rewrite();
    else if (notice.type === 'closed') on.close();
    else on.change();
  });

  function toQueued(prompt: QueuedPrompt, userId: string, isExcerpt: boolean) {
    const { turnId, messageId, promptId, excerpt: text, authorId } = prompt;
    const id = userMessageIdOf(prompt);
    const excerpt: UIMessage = { id, role: 'user', parts: [{ type: 'text', text }] };
    return {
      turnId,
      messageId,
      position: session.queue.positionOf(prompt),
      message: (isExcerpt ? undefined : messageOf(session, promptId)) ?? excerpt,
      ...(isExcerpt && { isExcerpt: true as const }),
      author: toAuthor(prompt),
      isMine: authorId === userId,
    };
  }

  function queueFor(userId: string) {
    let bytes = 0;
    return session.queue
      .list()
      .filter((prompt) => channelKeyOf(prompt) === logChat)
      .map((prompt) => {
        bytes += prompt.bytes;
        return toQueued(prompt, userId, bytes > QUEUE_BYTES);
      });
  }

  return {
    stateFor: (userId) => ({
      queue: queueFor(userId),
      people: session.people.users().slice(0, MOST_PEOPLE),
      agent: { isConnected: session.isRunnerConnected },
    }),
    askedIn({ turnId }) {
      const prompt = session.storage.promptInfo('turnId', turnId);
      if (!prompt) return {};
      const message = messageOf(session, prompt.promptId);
      const { replaces } = prompt;
      return {
        ...(message && { message }),
        author: toAuthor(prompt),
        ...(replaces !== undefined && { replaces }),
      };
    },
    events: () =>
      session.models === undefined ? [] : [{ type: 'models', models: session.models }],
    leave() {
      unsubscribe();
      release();
    },
  };
}

function messageOf({ storage }: Session, promptId: string): UIMessage | undefined {
  const prompt = storage.prompt(promptId);
  return prompt && toUIMessage(toUserMessage(prompt, prompt.askedAt));
}

function toAuthor({ authorId: id, authorName: name }: PromptInfo): Author {
  return { id, ...(name !== undefined && { name }) };
}
