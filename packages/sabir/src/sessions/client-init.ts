import type { SessionMessage } from '../sources/agent-ops/index.ts';
import { type Client, type Clients, isIn, toConnectedUser } from './clients.ts';
import type { SessionLimits } from './options.ts';
import { type ClientInit, type ConnectedUser, PROTOCOL } from './protocol.ts';
import type { SessionTurns } from './session-turns.ts';
import type { SessionStorage } from './storage.ts';

type Session = {
  sessionId: string;
  storage: SessionStorage;
  turns: SessionTurns;
  clients: Clients;
  limits: SessionLimits;
  maxMessageBytes: number;
};

/** The first event that a client gets. */
export function toClientInit(client: Client, session: Session): ClientInit {
  const { sessionId, storage, turns, clients, limits, maxMessageBytes } = session;
  const { running, queue, runner, models, queueReason } = turns;
  const { messages: wanted = limits.initMessages, channel, role } = client;
  const limit = Math.min(wanted, limits.initMessages);
  const { initBytes: maxBytes } = limits;
  const messages: SessionMessage[] =
    limit > 0 ? storage.messages({ ...(channel && { channel }), limit, maxBytes }) : [];
  const isTold = running !== undefined && isIn(client, running.channel);
  if (isTold && running.isCreated && limit > 0) messages.push(running.message());
  const { turnId, promptId } = running?.turn ?? {};
  return {
    type: 'init',
    session: { id: sessionId, status: 'running', messages },
    data: {
      protocol: PROTOCOL,
      role,
      maxMessageBytes,
      runnerConnected: runner.isConnected,
      runnerBusy: running !== undefined,
      promptsQueued: queue.size,
      connectedClients: clients.size + 1,
      connectedUsers: withUser(clients.users(), toConnectedUser(client.user)),
      turn:
        isTold && turnId && promptId
          ? { turnId, promptId, seq: running.seq, ...running.channel }
          : null,
      queue: queue.toList().filter((prompt) => isIn(client, prompt)),
      queueReason,
      questions: isTold && turnId ? openQuestions(turns, turnId) : [],
      channels: storage.channels(),
      ...(models !== undefined && { models }),
    },
  };
}

function openQuestions(turns: SessionTurns, turnId: string): ClientInit['data']['questions'] {
  const open = turns.questions.of(turnId).map(({ event }) => event);
  return open as ClientInit['data']['questions'];
}

function withUser(users: ConnectedUser[], user: ConnectedUser): ConnectedUser[] {
  return [...users.filter(({ id }) => id !== user.id), user];
}
