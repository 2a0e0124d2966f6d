import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NOTHING_WRITTEN, promptOf, watch } from '../../../test/upstream-turn.ts';
import type { Socket, SocketListener } from '../../sources/agent-ops/socket.ts';
import { LinkedSession, type LinkedSessionOptions } from './linked-session.ts';
import type { LinkEvent, LinkRequest } from './protocol.ts';

const CHANNEL = { channelType: 'web', channelId: 'default' };
const INIT: LinkEvent = {
  type: 'init',
  protocol: { name: 'sabir-session', version: 1 },
  maxMessageBytes: 10_000,
  channels: [],
};

/** A session of a gateway, and the server's side of each of its connections. */
function setUp(options: Partial<LinkedSessionOptions> = {}) {
  const requests: LinkRequest[][] = [];
  let listener: SocketListener | undefined;
  let isAway = false;

  function connect(given: SocketListener): Socket {
    const sent: LinkRequest[] = [];
    requests.push(sent);
    listener = given;
    given.event(INIT);
    let isOpen = true;
    return {
      get isOpen() {
        return isOpen;
      },
      send: (message) =>
        void sent.push(typeof message === 'string' ? JSON.parse(message) : message),
      close() {
        isOpen = false;
      },
    };
  }

  const session = new LinkedSession({
    channel: CHANNEL,
    pingMs: 1_000,
    returnMs: 20_000,
    giveUpMs: 60_000,
    historyMs: 1_000,
    connect: async (given) => {
      if (isAway) throw new Error('away');
      return connect(given);
    },
    ...options,
  });
  session.connected(connect(session));
  return {
    session,
    /** What each connection has brought to the server. */
    requests,
    last: () => requests.at(-1) as LinkRequest[],
    tell: (event: LinkEvent) => listener?.event(event),
    drop: () => listener?.drop('cut'),
    goAway: () => {
      isAway = true;
    },
    comeBack: () => {
      isAway = false;
    },
  };
}

const started = { type: 'start', messageId: 'm' } as const;
const delta = (text: string) => ({ type: 'text-delta', id: '1', delta: text }) as const;
const begun = [
  started,
  { type: 'start-step' },
  { type: 'text-start', id: '1' },
  delta('Half '),
] as const;
const rest = [
  delta('and whole.'),
  { type: 'text-end', id: '1' },
  { type: 'finish-step' },
  { type: 'finish', messageMetadata: { outcome: 'finished' } },
] as const;
const chunksOf = (turnId: string, chunks: readonly object[], seq = chunks.length): LinkEvent => ({
  type: 'chunks',
  turnId,
  seq,
  chunks: chunks as Extract<LinkEvent, { type: 'chunks' }>['chunks'],
});

describe('a gateway’s session on a session server', () => {
  beforeEach(() => {
    const toFake = ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval', 'Date'] as const;
    vi.useFakeTimers({ toFake: [...toFake] });
    vi.spyOn(Math, 'random').mockReturnValue(1);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  it('asks after a drop for what follows the last chunk, and repeats answers and stops', async () => {
    const { session, requests, tell, drop, last } = setUp();
    const prompt = promptOf('go');
    const { turnId } = prompt;
    const watched = watch(session, prompt);
    tell(chunksOf(turnId, begun));
    watched.turn.answer({ type: 'answer', questionId: 'q', answer: 'Yes' });
    watched.turn.stop();
    drop();
    await vi.advanceTimersByTimeAsync(100);
    expect(requests).toHaveLength(2);
    expect(last()).toMatchObject([
      { type: 'prompt', turnId, text: 'go', after: 4 },
      { type: 'answer', turnId, questionId: 'q', answer: 'Yes' },
      { type: 'stop', turnId },
    ]);
    tell(chunksOf(turnId, rest, 8));
    expect(await watched.done).toMatchObject({ outcome: 'finished' });
    expect(watched.chunks).toEqual([...begun, ...rest]);
    expect(session.isBusy).toBe(true);
    tell({ type: 'stopped', turnId });
    expect(session.isBusy).toBe(false);
  });

  it('skips chunks that it has, and those that leave a gap', async () => {
    const { session, tell } = setUp();
    const prompt = promptOf('go');
    const { turnId } = prompt;
    const watched = watch(session, prompt, { chunks: begun.slice(0, 2), mark: 2 });
    tell(chunksOf(turnId, [delta('of an older request')], 6));
    tell(chunksOf(turnId, begun));
    tell(chunksOf(turnId, begun));
    tell(chunksOf(turnId, [...begun.slice(3), ...rest], 8));
    expect(await watched.done).toMatchObject({ outcome: 'finished' });
    expect(watched.chunks).toEqual([...begun.slice(2), ...rest]);
  });

  it('reports its turns as unreachable every `returnMs`, and ends them as dropped after `giveUpMs`', async () => {
    const { session, tell, drop, goAway } = setUp({ returnMs: 5_000, giveUpMs: 12_000 });
    const prompts = [promptOf('one'), promptOf('two')];
    const [one, two] = prompts.map((prompt) => watch(session, prompt));
    const onUnreachable = vi.fn();
    for (const watched of [one, two]) if (watched) watched.turn.onUnreachable = onUnreachable;
    tell(chunksOf(prompts[0]?.turnId ?? '', begun));
    goAway();
    drop();
    const seen: number[] = [];
    for (const ms of [4_900, 100, 5_000, 1_900]) {
      await vi.advanceTimersByTimeAsync(ms);
      seen.push(onUnreachable.mock.calls.length);
    }
    expect(seen).toEqual([0, 2, 4, 4]);
    expect([one?.isOver, two?.isOver, session.isClosed]).toEqual([false, false, false]);
    await vi.advanceTimersByTimeAsync(100);
    for (const watched of [one, two]) {
      expect(await watched?.done).toMatchObject({ outcome: 'failed', code: 'upstream-dropped' });
      expect(watched?.closed).toHaveLength(1);
    }
    expect(one?.text).toBe('Half ');
    expect(session.isClosed).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('waits for ever, and reports nothing, where its limits are Infinity', async () => {
    const { session, drop, goAway } = setUp({ returnMs: Infinity, giveUpMs: Infinity });
    const watched = watch(session, promptOf('go'));
    const onUnreachable = vi.fn();
    watched.turn.onUnreachable = onUnreachable;
    goAway();
    drop();
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(onUnreachable).not.toHaveBeenCalled();
    expect(watched.isOver).toBe(false);
    session.close();
  });

  it('goes on when the server comes back after its turns were reported as unreachable', async () => {
    const { session, tell, drop, goAway, comeBack, last } = setUp({ returnMs: 1_000 });
    const prompt = promptOf('go');
    const watched = watch(session, prompt);
    tell(chunksOf(prompt.turnId, begun));
    goAway();
    drop();
    await vi.advanceTimersByTimeAsync(30_000);
    comeBack();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(last()).toMatchObject([{ type: 'prompt', turnId: prompt.turnId, after: begun.length }]);
    tell(chunksOf(prompt.turnId, rest, begun.length + rest.length));
    expect(await watched.done).toMatchObject({ outcome: 'finished' });
    expect(watched.text).toBe('Half and whole.');
    session.close();
  });

  it('goes on when the server is back within `returnMs`, however often that happens', async () => {
    const { session, tell, drop, goAway, comeBack } = setUp({ returnMs: 5_000 });
    const prompt = promptOf('go');
    const watched = watch(session, prompt);
    for (let n = 0; n < 30; n++) {
      goAway();
      drop();
      await vi.advanceTimersByTimeAsync(2_000);
      comeBack();
      await vi.advanceTimersByTimeAsync(2_500);
      tell(chunksOf(prompt.turnId, n === 0 ? begun : [delta(`${n} `)], 4 + n));
    }
    expect(watched.isOver).toBe(false);
    tell(chunksOf(prompt.turnId, rest.slice(1), 36));
    expect(await watched.done).toMatchObject({ outcome: 'finished' });
  });

  it('reports its turns as unreachable where a server drops it again and again, then gives up', async () => {
    const { session, drop } = setUp({ giveUpMs: 50_000 });
    const watched = watch(session, promptOf('go'));
    const onUnreachable = vi.fn();
    watched.turn.onUnreachable = onUnreachable;
    for (let n = 0; n < 20; n++) {
      drop();
      await vi.advanceTimersByTimeAsync(2_000);
    }
    expect(watched.isOver).toBe(false);
    expect(onUnreachable.mock.calls.length).toBeGreaterThan(5);
    for (let n = 0; n < 10; n++) {
      drop();
      await vi.advanceTimersByTimeAsync(2_000);
    }
    expect(await watched.done).toMatchObject({ code: 'upstream-dropped' });
  });

  it('takes two pings without an answer for a drop', async () => {
    const { session, requests, tell } = setUp();
    watch(session, promptOf('go'));
    await vi.advanceTimersByTimeAsync(1_000);
    tell({ type: 'pong' });
    await vi.advanceTimersByTimeAsync(2_000);
    expect(requests).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(requests).toHaveLength(2);
    session.close();
  });

  it('closes when the connection drops and nothing is under way', () => {
    const { session, drop } = setUp();
    drop();
    expect(session.isClosed).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('repeats a stop after a drop also for a turn that was released', async () => {
    const { session, tell, drop, last } = setUp();
    const prompt = promptOf('go');
    const { turn } = watch(session, prompt);
    turn.stop();
    turn.release();
    expect(session.isBusy).toBe(true);
    drop();
    await vi.advanceTimersByTimeAsync(100);
    expect(last()).toEqual([{ type: 'stop', turnId: prompt.turnId }]);
    tell({ type: 'stopped', turnId: prompt.turnId });
    expect(session.isBusy).toBe(false);
  });

  it('fails a prompt that is longer than the server reads, and sends nothing', async () => {
    const { session, last } = setUp();
    const watched = watch(session, promptOf('é'.repeat(6_000)));
    expect(await watched.done).toMatchObject({ outcome: 'failed', code: 'body-too-large' });
    expect(last()).toEqual([]);
  });

  it.each([
    ['refuses', { type: 'refused', turnId: '', code: 'queue-full', error: 'Full.' }, 'queue-full'],
    ['has forgotten', { type: 'gone', turnId: '' }, 'upstream-dropped'],
  ] as const)('fails a turn that the server %s', async (_, event, code) => {
    const { session, tell } = setUp();
    const prompt = promptOf('go');
    const watched = watch(session, prompt);
    tell({ ...event, turnId: prompt.turnId });
    expect(await watched.done).toMatchObject({ outcome: 'failed', code });
    await watched.turn.accepted;
  });

  it('reports a place in the queue, and that it waits no more', async () => {
    const { session, tell, drop } = setUp();
    const prompt = promptOf('go');
    const { turnId } = prompt;
    const { turn, done } = watch(session, prompt);
    const places: unknown[] = [];
    turn.onQueue = () => places.push([turn.isQueued, turn.queuePosition]);
    tell({ type: 'accepted', turnId });
    await turn.accepted;
    expect(turn.isQueued).toBe(false);
    tell({ type: 'queue', turnId, position: 2 });
    tell({ type: 'queue', turnId, position: 1 });
    expect(places).toEqual([
      [true, 2],
      [true, 1],
    ]);
    drop();
    await vi.advanceTimersByTimeAsync(100);
    expect(turn.isQueued).toBe(true);
    // Meanwhile it has begun, and has said nothing yet.
    tell({ type: 'accepted', turnId });
    expect(turn.isQueued).toBe(false);
    tell({ type: 'withdrawn', turnId });
    expect(await done).toMatchObject({ outcome: 'stopped', reason: 'withdrawn' });
  });

  it('rejects a history when the connection drops, and when it takes too long', async () => {
    const { session, tell, last } = setUp();
    watch(session, promptOf('go'));
    const user = { id: 'ann' };
    const messages = [{ id: 'm', role: 'user' as const, parts: [] }];
    const read = session.history(user);
    expect(last().at(-1)).toEqual({ type: 'history', id: 1, channel: CHANNEL });
    tell({ type: 'history', id: 1, messages });
    expect(await read).toEqual(messages);
    const late = expect(session.history(user)).rejects.toMatchObject({ code: 'no-history' });
    await vi.advanceTimersByTimeAsync(1_000);
    await late;
    const dropped = expect(session.history(user)).rejects.toMatchObject({
      code: 'upstream-dropped',
    });
    session.close();
    await dropped;
    await expect(session.history(user)).rejects.toMatchObject({ code: 'upstream-unreachable' });
  });

  it('closes the older of two that follow the same turn in one process', async () => {
    const { session, tell } = setUp();
    const prompt = promptOf('go');
    const older = watch(session, prompt);
    const newer = watch(session, prompt, NOTHING_WRITTEN);
    expect(await older.done).toMatchObject({ code: 'upstream-dropped' });
    tell(chunksOf(prompt.turnId, [...begun, ...rest]));
    expect(await newer.done).toMatchObject({ outcome: 'finished' });
  });
});
