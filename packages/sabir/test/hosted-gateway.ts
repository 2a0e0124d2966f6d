/** A gateway and its sessions in one process, with an agent that the test leads. */
import { onTestFinished } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import { foldChunks } from '../src/core/fold.ts';
import type { ChatGatewayOptions, FinishedTurn } from '../src/gateway/index.ts';
import { createSessions, memorySessionStore, type SessionsOptions } from '../src/sessions/index.ts';
import { createTestGateway, createUser } from './gateway-client.ts';
import { createLedAgent } from './led-agent.ts';

export type HostedOptions = {
  sessions?: Partial<SessionsOptions>;
  gateway?: Partial<ChatGatewayOptions>;
};

export function startHosted({ sessions: ofSessions, gateway: ofGateway }: HostedOptions = {}) {
  const agent = createLedAgent();
  const store = ofSessions?.store ?? memorySessionStore();
  const sessions = createSessions({ store, agent: () => agent, ...ofSessions });
  const finished: FinishedTurn[] = [];
  const gateway = createTestGateway(undefined, {
    sessions,
    onFinish: (turn) => void finished.push(turn),
    ...ofGateway,
  });
  sessions.recover();
  const close = async () => {
    await Promise.all([gateway.close(), sessions.close(0)]);
    store.close();
  };
  onTestFinished(close);
  const user = (name: string) => createUser(gateway, name);
  const { session } = sessions.hold('s1');
  return { agent, sessions, session, gateway, finished, close, carl: user('carl'), user };
}

export const turnOf = (response: Response) => response.headers.get('x-sabir-turn') as string;
export const queueOf = (chunks: Chunk[]) =>
  chunks.flatMap((chunk) => (chunk.type === 'data-queue' ? [chunk.data] : []));
export const outcomeOf = (chunks: Chunk[]) => foldChunks(chunks).metadata;
