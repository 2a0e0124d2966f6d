import {
  type PromptInfo,
  promptIdOf,
  type QueuedPrompt,
  type Session,
  type StoredMessage,
} from '../../sessions/index.ts';
import {
  type ClientInit,
  PROTOCOL,
  type QueuedPromptState,
} from '../../wires/agent-ops/protocol.ts';
import { toSessionMessage, toUserSessionMessage } from '../../wires/agent-ops/snapshot.ts';
import { type Client, isIn } from './clients.ts';
import type { Feed } from './feed.ts';

type Shown = { session: Session; feed: Feed | undefined; maxMessageBytes: number };

/** The first event that a client gets. */
export function toClientInit(
  client: Client,
  { session, feed, maxMessageBytes }: Shown,
): ClientInit {
  const { sessionId, storage, limits, running, queue, people, models } = session;
  const { messages: wanted = limits.initMessages, channel, role } = client;
  const limit = Math.min(wanted, limits.initMessages);
  const { initBytes: maxBytes } = limits;
  const stored =
    limit > 0 ? storage.messages({ ...(channel && { channel }), limit, maxBytes }) : [];
  const seen = feed && isIn(client, feed.channel) ? feed : undefined;
  const written = limit > 0 ? seen?.message() : undefined;
  // It may be stored already: what the clients have not seen of it follows as events.
  const messages: ClientInit['session']['messages'] = stored
    .filter(({ id }) => id !== written?.id)
    .map(toMessage);
  if (written) messages.push(written);
  return {
    type: 'init',
    session: { id: sessionId, status: 'running', messages },
    data: {
      protocol: PROTOCOL,
      role,
      maxMessageBytes,
      runnerConnected: session.isRunnerConnected,
      runnerBusy: running !== undefined,
      promptsQueued: queue.size,
      connectedClients: people.size,
      connectedUsers: people.users(),
      turn: running && isIn(client, running) ? toTurn(running, seen?.position ?? 0) : null,
      queue: toQueueState(session).filter((prompt) => isIn(client, prompt)),
      queueReason: session.queueReason,
      questions: (seen?.questions() ?? []) as unknown as ClientInit['data']['questions'],
      channels: storage.channels(),
      ...(models !== undefined && { models }),
    },
  };
}

function toTurn({ messageId, promptId, channelType, channelId }: PromptInfo, seq: number) {
  return { turnId: messageId, promptId, seq, channelType, channelId };
}

export function toMessage(stored: StoredMessage): ClientInit['session']['messages'][number] {
  const { channelType, channelId, promptId, authorId, authorName } = stored;
  const createdAt = Math.floor(stored.createdAt / 1_000);
  const channel = { channelType, channelId };
  if (stored.role === 'assistant') {
    const named = promptId === undefined ? undefined : { promptId };
    return toSessionMessage(stored, { ...named, channel, createdAt, isOver: true });
  }
  const author = authorId === undefined ? undefined : toAuthor(authorId, authorName);
  // A V2 client finds the message that a turn answers by the prompt's id.
  const message = { ...stored, id: promptIdOf(stored) };
  return toUserSessionMessage(message, { channel, createdAt, ...(author && { author }) });
}

function toAuthor(id: string, name: string | undefined) {
  return { id, ...(name !== undefined && { name }) };
}

/** All prompts that wait. */
export function toQueueState({ queue }: Session): QueuedPromptState[] {
  return queue.list().map(toState);
}

function toState(queued: QueuedPrompt, index: number): QueuedPromptState {
  const { promptId, messageId, excerpt, authorId, authorName, channelType, channelId } = queued;
  return {
    promptId,
    turnId: messageId,
    content: excerpt,
    position: index + 1,
    authorId,
    ...(authorName !== undefined && { authorName }),
    channelType,
    channelId,
  };
}
