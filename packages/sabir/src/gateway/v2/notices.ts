import type { QueuedPrompt, Session, SessionNotice } from '../../sessions/index.ts';
import { SESSION_TYPES, type StatusEvent } from '../../wires/agent-ops/protocol.ts';
import { type Clients, isIn } from './clients.ts';
import { toMessage, toQueueState } from './init.ts';

type NoticesOptions = { session: Session; clients: Clients };

/** What happens in a session, as V2 clients get it. */
export function createNotices({ session, clients }: NoticesOptions) {
  function show(notice: SessionNotice): void {
    switch (notice.type) {
      case 'asked':
        clients.broadcastIn({ type: 'message', data: toMessage(notice.message) }, notice.message);
        break;
      case 'replaced': {
        // Deployed clients take these messages off the screen.
        const messageIds = notice.messages.map((message) => toMessage(message).id);
        clients.broadcastIn({ type: 'messages.removed', messageIds }, notice.prompt);
        break;
      }
      case 'restored':
        for (const message of notice.messages) {
          clients.broadcastIn({ type: 'message', data: toMessage(message) }, message);
        }
        break;
      case 'ended': {
        const { messageId: turnId, promptId, channelType, channelId } = notice.prompt;
        const about = { turnId, promptId, channelType, channelId };
        clients.broadcastIn({ type: 'agentStatus', status: 'idle', ...about }, notice.prompt);
        break;
      }
      case 'idle':
        clients.broadcast({ type: 'status', data: { runnerBusy: false } } satisfies StatusEvent);
        break;
      case 'queued':
        clients.broadcastIn(toStanding(notice.prompt), notice.prompt);
        showQueue();
        break;
      case 'dequeued': {
        const { promptId, messageId: turnId } = notice.prompt;
        const remaining = session.queue.size;
        const data = { promptDequeued: true, remaining, promptId, turnId };
        clients.broadcastIn({ type: 'status', data } satisfies StatusEvent, notice.prompt);
        showQueue();
        break;
      }
      case 'withdrawn': {
        const { promptId, messageId: turnId, excerpt: content } = notice.prompt;
        const data = { promptId, turnId, content };
        clients.broadcastIn({ type: 'queue.withdrawn', data }, notice.prompt);
        showQueue();
        break;
      }
      case 'runner': {
        const data = { runnerConnected: notice.isConnected };
        clients.broadcast({ type: 'status', data } satisfies StatusEvent);
        break;
      }
      case 'joined':
      case 'left': {
        const { id: userId, name } = notice.user;
        const userDetails = { id: userId, ...(typeof name === 'string' && { name }) };
        const connectedUsers = session.people.users();
        clients.broadcast({ type: `user.${notice.type}`, userId, userDetails, connectedUsers });
        break;
      }
      case 'event':
        if (!SESSION_TYPES.has(notice.event.type)) clients.broadcast(notice.event);
    }
  }

  function showQueue(): void {
    const all = toQueueState(session);
    const { queueReason } = session;
    clients.broadcastEach((client) => {
      const queue = all.filter((prompt) => isIn(client, prompt));
      return { type: 'queue.state', data: { pending: queue.at(-1) ?? null, queue, queueReason } };
    });
  }

  function toStanding(prompt: QueuedPrompt): StatusEvent {
    const { promptId, messageId: turnId } = prompt;
    const { queue, queueReason } = session;
    const queuePosition = queue.positionOf(prompt);
    return {
      type: 'status',
      data: { promptQueued: true, queuePosition, queueReason, promptId, turnId },
    };
  }

  return {
    /** A notice about the turn's end comes when the clients have all of the turn. */
    show,
    /** Where a prompt waits. */
    toStanding,
  };
}
