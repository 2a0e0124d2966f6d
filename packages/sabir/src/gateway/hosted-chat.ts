import type { UIMessage } from '../core/message.ts';
import {
  DEFAULT_CHANNEL,
  type PromptInfo,
  type Session,
  type SessionNotice,
  type Sessions,
  toUIMessage,
  toUserMessage,
  waitingMessagesOf,
} from '../sessions/index.ts';
import type { Place } from './chat-route.ts';
import type { Author, ChatEvents, ChatWatch } from './chat-watch.ts';

/** Followers are sent the queue again and again. Of a prompt that does not fit, they get an excerpt. */
const QUEUE_BYTES = 64_000;
/** So many people are named. */
const MOST_PEOPLE = 100;

/** Watches a conversation of a session in this process. */
export function watchHostedChat(
  sessions: Sessions,
  { sessionId, channel = DEFAULT_CHANNEL }: Pick<Place, 'sessionId' | 'channel'>,
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

  function queueFor(userId: string) {
    return waitingMessagesOf(session, channel, QUEUE_BYTES).map(
      ({ prompt, message, isExcerpt }) => ({
        turnId: prompt.turnId,
        messageId: prompt.messageId,
        position: session.queue.positionOf(prompt),
        message,
        ...(isExcerpt && { isExcerpt: true as const }),
        author: toAuthor(prompt),
        isMine: prompt.authorId === userId,
      }),
    );
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
