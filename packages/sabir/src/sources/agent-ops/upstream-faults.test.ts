/** Everything a server and a network can do to a session. */
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { agentOpsPerTest, SOCKETS } from '../../../test/agent-ops-rig.ts';
import { type Step, say, sayWhen, steps } from '../../../test/agent-ops-script.ts';
import { ann, never, promptOf, trackTimers, until, watch } from '../../../test/upstream-turn.ts';
import { agentOpsUpstream } from './upstream.ts';

const { start, openAt } = agentOpsPerTest();
const DROPPED = {
  status: 'failed',
  code: 'upstream-dropped',
  message: 'Stream interrupted',
};

describe.each(Object.entries(SOCKETS))('with %s', (_, WebSocket) => {
  const options = { WebSocket };

  describe('opening', () => {
    it.each([400, 401, 403, 404, 426, 500, 503])('is refused with %i', async (status) => {
      const server = await start();
      // Node's own tries a second time when it is told that it is not signed in.
      const times = status === 401 && WebSocket !== SOCKETS.ws ? 2 : 1;
      for (let time = 0; time < times; time++) server.fault({ refuse: status });
      const error = await openAt(server, options).catch((reason: unknown) => reason);
      expect(error).toMatchObject({
        code: 'upstream-unreachable',
        userMessage: 'Connection failed',
      });
      expect((error as Error).message).not.toBe('Connection failed');
      // And it is not remembered.
      await watch(await openAt(server, options), promptOf('again')).done;
    });

    it('finds nobody there', async () => {
      const server = await start();
      await server.close();
      const opening = openAt(server, options);
      await expect(opening).rejects.toMatchObject({ code: 'upstream-unreachable' });
    });

    it('finds a server that speaks something else', async () => {
      const server = createServer((socket) => {
        socket.on('error', () => undefined);
        socket.resume();
        socket.end('+OK POP3 server ready\r\n');
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const { port } = server.address() as { port: number };
      const opening = openAt({ url: `ws://127.0.0.1:${port}` }, options);
      await expect(opening).rejects.toMatchObject({ code: 'upstream-unreachable' });
      await new Promise((resolve) => server.close(resolve));
    });

    it('takes its time', async () => {
      const server = await start();
      server.fault({ delayMs: 50 });
      const watched = watch(await openAt(server, options), promptOf('late'));
      await watched.done;
      expect(watched.text).toBe('You said late');
    });

    it('is never answered, and does not wait for ever', async () => {
      const timers = trackTimers();
      try {
        const server = await start();
        server.fault({ hang: true });
        const opening = openAt(server, { ...options, openMs: 30 });
        await expect(opening).rejects.toMatchObject({ code: 'upstream-unreachable' });
        expect(timers.count).toBe(0);
      } finally {
        timers.restore();
      }
    });

    it('is given up before it is answered, and leaves no connection', async () => {
      const server = await start();
      server.fault({ delayMs: 30 });
      const giveUp = new AbortController();
      const upstream = agentOpsUpstream({ url: server.url, ...options });
      const opening = upstream.open({
        sessionId: 's',
        user: ann,
        role: 'owner',
        signal: giveUp.signal,
      });
      giveUp.abort();
      await expect(opening).rejects.toMatchObject({ code: 'upstream-unreachable' });
      server.fault();
      await watch(await openAt(server, options), promptOf('x')).done;
      await until(() => server.live.length === 1);
    });
  });

  describe('a turn', () => {
    const CUTS: Record<string, Step> = {
      'cut in a frame': { cut: 'in-a-frame' },
      'cut between frames': { cut: 'between-frames' },
      'closed by the server': { close: 1000 },
      'closed as broken': { close: 1011 },
      'made of invalid UTF-8': { garbage: 'utf8' },
    };

    it.each(Object.entries(CUTS))('is %s', async (_name, step) => {
      const waits = async function* () {
        yield { say: 'Half ' };
        yield step;
        await new Promise(() => undefined);
      };
      const server = await start({ script: () => waits });
      const session = await openAt(server, options);
      const watched = watch(session, promptOf('go'));
      const held = watch(session, promptOf('held', { chatId: 'c2' }));
      expect(await watched.done).toMatchObject({ outcome: 'failed', code: 'upstream-dropped' });
      expect(watched.text).toBe('Half ');
      expect(watched.closed).toEqual([DROPPED]);
      await held.done;
      expect(held.closed).toEqual([DROPPED]);
      expect(session.isClosed).toBe(true);
      await until(() => server.live.length === 0);
    });

    it('is cut while its prompt is being sent', async () => {
      const server = await start();
      server.closeOnPrompt();
      const session = await openAt(server, options);
      const watched = watch(session, promptOf('go'));
      await watched.done;
      expect(watched.closed).toEqual([DROPPED]);
      expect(server.received('prompt')).toHaveLength(1);
    });

    it('survives what nobody can read, and counts it', async () => {
      const server = await start({
        script: () =>
          steps(
            { garbage: 'text' },
            { garbage: 'shapes' },
            { say: 'Still ' },
            { garbage: 'binary' },
            { garbage: 'shapes' },
            { say: 'here.' },
          ),
      });
      const session = await openAt(server, options);
      const watched = watch(session, promptOf('go'));
      expect(await watched.done).toMatchObject({ outcome: 'finished' });
      expect(watched.text).toBe('Still here.');
      const { stats } = watched.turn.translator;
      expect(stats.unknown).toEqual({ 'nobody-told-us': 2 });
      expect(stats.malformed['(no type)']).toBeGreaterThanOrEqual(4);
      expect(stats.malformed.chunk).toBeGreaterThanOrEqual(1);
    });

    it('survives a flood', async () => {
      const server = await start({ script: () => steps({ flood: 20_000 }), cork: 64 });
      const watched = watch(await openAt(server, options), promptOf('go'));
      expect(await watched.done).toMatchObject({ outcome: 'finished' });
      expect(watched.text.endsWith('19998 19999 ')).toBe(true);
      expect(watched.chunks.filter(({ type }) => type === 'text-delta')).toHaveLength(20_000);
    });

    it('falls silent, and so does the server: half open', async () => {
      const server = await start({ script: () => steps({ say: 'Half ' }, { silence: true }) });
      const session = await openAt(server, { ...options, pingMs: 30 });
      const watched = watch(session, promptOf('go'));
      await watched.done;
      expect(watched.closed).toEqual([DROPPED]);
      expect(session.isClosed).toBe(true);
    });

    it('falls silent, and the server is there', async () => {
      const gate = Promise.withResolvers<void>();
      const server = await start({ script: () => sayWhen(gate.promise, 'Half ', 'and whole.') });
      const session = await openAt(server, { ...options, pingMs: 30 });
      const watched = watch(session, promptOf('go'));
      await until(() => server.received('ping').length >= 5);
      expect(watched.isOver).toBe(false);
      gate.resolve();
      expect(await watched.done).toMatchObject({ outcome: 'finished' });
    });
  });

  it('reads an event up to the limit, and none beyond', async () => {
    const toolOf = (length: number) => ({
      tool: {
        callId: 'c',
        toolName: 'read',
        status: 'completed' as const,
        result: 'x'.repeat(length),
      },
    });
    const server = await start({
      dialect: 'v2',
      script: (text) => steps(toolOf(text === 'small' ? 50_000 : 200_000), { say: 'Done.' }),
    });
    const session = await openAt(server, { ...options, maxEventBytes: 100_000 });
    const small = watch(session, promptOf('small'));
    expect(await small.done).toMatchObject({ outcome: 'finished' });
    const large = watch(session, promptOf('large'));
    const isRefused = WebSocket === SOCKETS.ws;
    expect(await large.done).toMatchObject({ outcome: isRefused ? 'failed' : 'finished' });
    expect(large.chunks.some(({ type }) => type === 'tool-output-available')).toBe(false);
    if (!isRefused) expect(large.turn.translator.stats.malformed['(no type)']).toBe(1);
  });

  it('is not brought down by a frame of 50 MB', async () => {
    const server = await start({ script: () => steps({ say: 'A' }, { bytes: 5e7 }, { say: 'B' }) });
    const watched = watch(await openAt(server, options), promptOf('go'));
    const { outcome } = await watched.done;
    // One closes the connection before it has read it; the other has read it and skips it.
    expect([outcome, watched.text]).toEqual(
      WebSocket === SOCKETS.ws ? ['failed', 'A'] : ['finished', 'AB'],
    );
  });

  it('holds nothing after a hundred sessions that ended in every way', async () => {
    const timers = trackTimers();
    try {
      const server = await start({
        script: (text) => (text === 'cut' ? steps({ cut: 'in-a-frame' }) : say(text)),
      });
      for (let round = 0; round < 20; round++) {
        const upstream = agentOpsUpstream({ url: server.url, ...options });
        const sessions = await Promise.all(
          ['say', 'cut', 'say', 'cut', 'say'].map((_text, at) =>
            upstream.open({
              sessionId: `s${round}-${at}`,
              user: ann,
              role: 'owner',
              signal: never(),
            }),
          ),
        );
        const turns = sessions.map((session, at) =>
          watch(session, promptOf(at % 2 ? 'cut' : 'say')),
        );
        if (round % 2) for (const { done } of turns) await done;
        for (const session of sessions) session.close();
        for (const { done } of turns) await done;
      }
      await until(() => server.live.length === 0);
      await until(() => timers.count === 0);
    } finally {
      timers.restore();
    }
  });
});
