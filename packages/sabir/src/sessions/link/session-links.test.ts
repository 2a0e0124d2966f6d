import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../../test/gateway-client.ts';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import { memorySessionStore } from '../memory-store.ts';
import { createSessions, type SessionsOptions } from '../sessions.ts';
import type { LinkEvent, LinkRequest } from './protocol.ts';
import { SessionLinks } from './session-links.ts';

const CHANNEL = { channelType: 'web', channelId: 'default' };

function setUp(options: Partial<SessionsOptions> = {}) {
  const agent = scriptedAgent();
  const sessions = createSessions({ store: memorySessionStore(), agent: () => agent, ...options });
  const { session } = sessions.hold('s');
  const links = new SessionLinks(session);
  onTestFinished(async () => {
    agent.go();
    links.close();
    await sessions.close(0);
  });

  function connect(user = 'ann') {
    const events: LinkEvent[] = [];
    let closed: number | undefined;
    const socket = {
      bufferedAmount: 0,
      send: (frame: string) => void events.push(JSON.parse(frame)),
      close(code?: number) {
        closed = code;
      },
    };
    const { message, close } = links.connect(socket, { user: { id: user }, role: 'collaborator' });
    const of = <Type extends LinkEvent['type']>(type: Type, turnId?: string) =>
      events.filter(
        (event): event is Extract<LinkEvent, { type: Type }> =>
          event.type === type && (turnId === undefined || Object(event).turnId === turnId),
      );
    return {
      socket,
      events,
      of,
      send: (request: LinkRequest) => message(JSON.stringify(request)),
      prompt: (turnId: string, text: string, after = 0) =>
        message(
          JSON.stringify({
            type: 'prompt',
            turnId,
            messageId: `m-${turnId}`,
            channel: CHANNEL,
            text,
            attachments: [],
            body: {},
            after,
          }),
        ),
      hasEnded: (turnId: string) => of('chunks', turnId).at(-1)?.chunks.at(-1)?.type === 'finish',
      isAsked: (turnId: string) => JSON.stringify(of('chunks', turnId)).includes('"open"'),
      drop: close,
      get closed() {
        return closed;
      },
    };
  }
  return { agent, sessions, session, links, connect };
}

describe('a session server toward a gateway', () => {
  it('introduces itself with its protocol, its limit and its channels', () => {
    const { connect } = setUp({ limits: { promptBytes: 5_000 } });
    expect(connect().events).toEqual([
      {
        type: 'init',
        protocol: { name: 'sabir-session', version: 1 },
        maxMessageBytes: 5_000,
        channels: [],
      },
    ]);
  });

  it('sends the chunks of a turn behind the number that the gateway has', async () => {
    const { connect, sessions } = setUp();
    const first = connect();
    first.prompt('t1', 'text');
    await eventually(() => first.hasEnded('t1'), 'its end');
    const all = first.of('chunks').flatMap(({ chunks }) => chunks);
    const { lastSeq } = (await sessions.log.get('t1')) ?? {};
    expect([all.length, first.of('chunks').at(-1)?.seq]).toEqual([lastSeq, lastSeq]);
    const second = connect();
    second.prompt('t1', 'text', 3);
    await eventually(() => second.hasEnded('t1'), 'its end');
    expect(second.of('chunks').flatMap(({ chunks }) => chunks)).toEqual(all.slice(3));
  });

  it('sends `gone` for a turn that its log has forgotten, or has less of than the gateway', async () => {
    const { connect, session } = setUp();
    const gateway = connect();
    gateway.prompt('t1', 'text');
    await eventually(() => gateway.hasEnded('t1'), 'its end');
    gateway.prompt('t1', 'text', 1_000);
    await eventually(() => gateway.of('gone').length, 'that it is gone');
    await session.log.close();
    gateway.prompt('t1', 'text');
    await eventually(() => gateway.of('gone').length === 2, 'that it is gone');
  });

  it('answers no other turn’s question of the same id', async () => {
    const { connect, agent } = setUp();
    const gateway = connect();
    const answer = (turnId: string, given: string) =>
      gateway.send({ type: 'answer', turnId, questionId: 'q1', answer: given });
    gateway.prompt('t1', 'question');
    await eventually(() => gateway.isAsked('t1'), 'the question');
    gateway.prompt('t2', 'question');
    answer('t1', 'One');
    await eventually(() => gateway.isAsked('t2'), 'the next question');
    // As a gateway repeats it that did not see the end of the first turn.
    answer('t1', 'One');
    answer('never', 'Three');
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(gateway.hasEnded('t2')).toBe(false);
    answer('t2', 'Two');
    await eventually(() => gateway.hasEnded('t2'), 'its end');
    expect(JSON.stringify(gateway.of('chunks', 't2'))).toContain('Answered: Two');
    expect(agent.prompts).toHaveLength(2);
  });

  it('takes the word of the gateway for who answers', async () => {
    const { connect, session } = setUp();
    const gateway = connect();
    gateway.prompt('t1', 'question');
    await eventually(() => gateway.isAsked('t1'), 'the question');
    const by = (userId: string, role: 'viewer' | 'owner') => ({ by: { userId, role } });
    const answer = { type: 'answer', turnId: 't1', questionId: 'q1', answer: 'Yes' } as const;
    gateway.send({ ...answer, ...by('vera', 'viewer') });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(gateway.hasEnded('t1')).toBe(false);
    gateway.send({ ...answer, ...by('olga', 'owner') });
    await eventually(() => gateway.hasEnded('t1'), 'its end');
    const { questions } = (await session.log.get('t1')) ?? {};
    expect(questions).toMatchObject([{ status: 'answered' }]);
  });

  it('confirms each stop: of a turn that runs, waits, has ended, or is not known', async () => {
    const { connect, agent } = setUp();
    const gateway = connect();
    gateway.prompt('runs', 'slow');
    gateway.prompt('waits', 'text');
    await eventually(() => agent.prompts.length === 1, 'the agent was asked');
    for (const turnId of ['waits', 'runs', 'unknown']) gateway.send({ type: 'stop', turnId });
    await eventually(() => gateway.of('stopped').length === 3, 'all confirmations');
    await eventually(() => gateway.hasEnded('runs'), 'its end');
    gateway.send({ type: 'stop', turnId: 'runs' });
    await eventually(() => gateway.of('stopped', 'runs').length === 2, 'another confirmation');
    expect(gateway.of('withdrawn')).toEqual([{ type: 'withdrawn', turnId: 'waits' }]);
    expect(agent.prompts.map(({ text }) => text)).toEqual(['slow']);
  });

  it('does not ask a prompt that comes after its stop, as on an older connection', async () => {
    const { connect, agent } = setUp();
    const [older, newer] = [connect(), connect()];
    newer.send({ type: 'stop', turnId: 't1' });
    await eventually(() => newer.of('stopped').length, 'the confirmation');
    older.prompt('t1', 'text');
    expect(older.of('withdrawn')).toHaveLength(1);
    older.prompt('t2', 'text');
    await eventually(() => older.hasEnded('t2'), 'the end of the next one');
    expect(agent.prompts).toHaveLength(1);
  });

  it('shows each place in the queue as it changes', async () => {
    const { connect } = setUp();
    const gateway = connect();
    for (const turnId of ['t1', 't2', 't3']) {
      gateway.prompt(turnId, turnId === 't1' ? 'slow' : 'text');
    }
    gateway.send({ type: 'stop', turnId: 't1' });
    await eventually(() => gateway.hasEnded('t3'), 'the end of the last one');
    const places = (turnId: string) => gateway.of('queue', turnId).map(({ position }) => position);
    expect([places('t1'), places('t2'), places('t3')]).toEqual([...[[], [1, 0], [2, 1, 0]]]);
  });

  it('refuses a prompt that the session refuses, and one of another user’s id', async () => {
    const { connect } = setUp({ limits: { queuedPrompts: 1 } });
    const [ann, bob] = [connect('ann'), connect('bob')];
    for (const turnId of ['t1', 't2', 't3']) ann.prompt(turnId, 'slow');
    expect(ann.of('refused')).toMatchObject([{ turnId: 't3', code: 'queue-full' }]);
    bob.prompt('t1', 'slow');
    expect(bob.of('refused')).toMatchObject([{ turnId: 't1', code: 'prompt-taken' }]);
    expect(bob.of('chunks')).toEqual([]);
  });

  it('reads no further ahead than the socket takes', async () => {
    const { connect } = setUp();
    const gateway = connect();
    gateway.socket.bufferedAmount = 10_000_000;
    gateway.prompt('t1', 'paced 20');
    await eventually(() => gateway.of('chunks').length, 'the first chunks');
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(gateway.of('chunks')).toHaveLength(1);
    gateway.socket.bufferedAmount = 0;
    await eventually(() => gateway.hasEnded('t1'), 'its end');
  });

  it('does not call a prompt withdrawn that waits while the process closes', async () => {
    const { connect, sessions, session, links } = setUp();
    const gateway = connect();
    gateway.prompt('t1', 'slow');
    gateway.prompt('t2', 'text');
    await eventually(() => gateway.of('queue', 't2').length, 'its place');
    await sessions.close(0);
    links.close();
    expect(gateway.of('withdrawn')).toEqual([]);
    expect(gateway.closed).toBe(1001);
    expect(session.storage.promptInfo('turnId', 't2')).toMatchObject({ status: 'queued' });
  });

  it('ignores what is no request', () => {
    const { connect } = setUp();
    const gateway = connect();
    for (const request of [{}, { type: 'prompt' }, { type: 'stop' }, { type: 'constructor' }]) {
      gateway.send(request as LinkRequest);
    }
    expect(gateway.events).toHaveLength(1);
    gateway.send({ type: 'ping' });
    expect(gateway.events.at(-1)).toEqual({ type: 'pong' });
  });
});
