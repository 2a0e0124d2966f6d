/**
 * What every upstream is held to: each MUST above the `Upstream` interface has its test here.
 *
 * An author's own runs it by giving a `setup`, whose agent does what the prompt's first word says:
 * - `text …` says "Hello, world!" and ends;
 * - `echo …` says the whole prompt and ends;
 * - `slow …` says "Half " and goes on with "and whole." when `rig.go()` is called;
 * - `question` asks `q1` with `data-question`, says "Answered: " and the answer, and ends;
 * - `fail` fails, and says "It broke.";
 * - `drop` says "Half " and then the connection is gone.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import type { Upstream, UpstreamSession } from '../src/turns/upstream.ts';
import { describeAttaching } from './upstream-attach-conformance.ts';
import { ann, bob, never, promptOf, trackTimers, until, watch } from './upstream-turn.ts';

export type UpstreamRig = {
  upstream: Upstream;
  /** The prompts the agent has got, in order, and whose they are if it can tell. */
  prompts(): { text: string; user?: string }[];
  /** Lets every `slow` turn go on. */
  go(): void;
  /** How many connections, runs or whatever else the agent holds for its sessions. */
  held(): number;
  /** The agent takes one prompt at a time. */
  isSerial: boolean;
  /** What the agent's side has in a log of its own of a turn, where it keeps one. */
  stored?(turnId: string): Promise<Chunk[]>;
  /** One that cannot be reached, and one that never answers `open`, where there is a connection. */
  unreachable?: Upstream;
  hanging?: Upstream;
  /** Ends an agent that lives in this process: its timers are not the upstream's. */
  end?(): Promise<void>;
  close(): Promise<void>;
};

/** What not every upstream has, and so is asked only of those that do. */
export type UpstreamTraits = {
  /** There is a connection: it can be refused, and it can drop. */
  hasConnection: boolean;
  hasHistory: boolean;
  /** Its sessions can go on with the turns of another process. */
  canAttach?: boolean;
  /**
   * Its chunks are those of a log elsewhere. The process of that log keeps the time of questions, and decides what a
   * person is shown of an error.
   */
  isReplica?: boolean;
};

export function describeUpstream(
  name: string,
  { hasConnection, hasHistory, canAttach = false, isReplica = false }: UpstreamTraits,
  setup: () => Promise<UpstreamRig>,
): void {
  describe(`upstream ${name}`, () => {
    let rig: UpstreamRig;
    let sessions: UpstreamSession[];
    const open = async (user = ann, sessionId = 's') => {
      const session = await rig.upstream.open({ sessionId, user, role: 'owner', signal: never() });
      sessions.push(session);
      return session;
    };

    beforeEach(async () => {
      sessions = [];
      rig = await setup();
    });
    afterEach(async () => {
      for (const session of sessions) session.close();
      await rig.close();
    });

    describe('open', () => {
      if (hasConnection) {
        it('rejects with a reason when the agent cannot be reached', async () => {
          const opening = rig.unreachable?.open({
            sessionId: 's',
            user: ann,
            role: 'owner',
            signal: never(),
          });
          const error = await opening?.catch((reason: unknown) => reason);
          expect(error).toBeInstanceOf(Error);
          expect((error as Error).message).not.toBe('');
        });

        it('gives up when the signal aborts', async () => {
          const giveUp = new AbortController();
          const opening = rig.hanging?.open({
            sessionId: 's',
            user: ann,
            role: 'owner',
            signal: giveUp.signal,
          });
          const outcome = opening?.then(
            () => 'open',
            () => 'rejected',
          );
          giveUp.abort();
          expect(await outcome).toBe('rejected');
        });
      }

      it('gives up when the signal has aborted already', async () => {
        const signal = AbortSignal.abort();
        await expect(
          rig.upstream.open({ sessionId: 's', user: ann, role: 'owner', signal }),
        ).rejects.toThrow();
        await until(() => rig.held() === 0);
      });
    });

    describe('prompt', () => {
      it('brings the answer, in order, under a translator of its own', async () => {
        const session = await open();
        const watched = watch(session, promptOf('text'));
        expect(await watched.done).toMatchObject({ outcome: 'finished' });
        expect(watched.text).toBe('Hello, world!');
      });

      it('sends each prompt exactly once', async () => {
        const session = await open();
        for (const text of ['echo a', 'echo b', 'echo b']) {
          const watched = watch(session, promptOf(text));
          await watched.done;
          expect(watched.text).toBe(text);
        }
        expect(rig.prompts().map(({ text }) => text)).toEqual(['echo a', 'echo b', 'echo b']);
      });

      it('does not call the sink from inside', async () => {
        // `watch` throws if it is.
        const session = await open();
        await watch(session, promptOf('text')).done;
        session.close();
        await watch(session, promptOf('text')).done;
      });

      it('does not throw on a session that is closed, and tells the sink', async () => {
        const session = await open();
        session.close();
        expect(session.isClosed).toBe(true);
        const watched = watch(session, promptOf('text'));
        expect(await watched.done).toMatchObject({ outcome: 'failed' });
        expect(watched.closed).toHaveLength(1);
        expect(rig.prompts()).toEqual([]);
      });

      it('tells what the agent failed with', async () => {
        const watched = watch(await open(), promptOf('fail'));
        expect(await watched.done).toMatchObject({ outcome: 'failed' });
        const error = watched.chunks.find((chunk) => chunk.type === 'error');
        expect(error).toMatchObject({ errorText: 'It broke.' });
      });

      if (isReplica) return;
      it('says errors as the application wants them said', async () => {
        const errorText = () => 'Sorry.';
        const watched = watch(await open(), promptOf('fail', { errorText }));
        await watched.done;
        expect(watched.chunks).toContainEqual({ type: 'error', errorText: 'Sorry.' });
      });
    });

    describe('several prompts', () => {
      it('keeps their turns apart, and says which one waits', async () => {
        const session = await open();
        const slow = watch(session, promptOf('slow', { chatId: 'c1' }));
        await until(() => slow.text === 'Half ');
        const second = watch(session, promptOf('echo second', { chatId: 'c2' }));
        const third = watch(session, promptOf('echo third', { chatId: 'c3' }));
        if (rig.isSerial)
          expect([second, third].map(({ turn }) => turn.isQueued)).toEqual([true, true]);
        expect(slow.turn.isQueued).toBe(false);
        rig.go();
        await Promise.all([slow.done, second.done, third.done]);
        expect(slow.text).toBe('Half and whole.');
        expect([second.text, third.text]).toEqual(['echo second', 'echo third']);
      });

      it('keeps apart those that were sent at the same moment', async () => {
        const session = await open();
        const texts = ['echo 1', 'echo 2', 'echo 3', 'echo 4'];
        const turns = texts.map((text) => watch(session, promptOf(text, { chatId: text })));
        await Promise.all(turns.map(({ done }) => done));
        expect(turns.map(({ text }) => text)).toEqual(texts);
      });

      it('gives each person a session of their own', async () => {
        const [hers, his] = [await open(ann), await open(bob)];
        expect(hers).not.toBe(his);
        await watch(hers, promptOf('echo hers', { user: ann })).done;
        await watch(his, promptOf('echo his', { user: bob })).done;
        const [first, second] = rig.prompts();
        if (first?.user === undefined) return;
        expect([first, second]).toEqual([
          { text: 'echo hers', user: 'ann' },
          { text: 'echo his', user: 'bob' },
        ]);
      });
    });

    describe('stop', () => {
      it('stops a turn that runs, and the next is answered', async () => {
        const session = await open();
        const slow = watch(session, promptOf('slow'));
        await until(() => slow.text === 'Half ');
        slow.turn.stop();
        expect(await slow.done).toMatchObject({ outcome: 'stopped' });
        expect(slow.text).toBe('Half ');
        const next = watch(session, promptOf('echo next'));
        expect(await next.done).toMatchObject({ outcome: 'finished' });
        expect(next.text).toBe('echo next');
      });

      it('stops that turn and no other', async () => {
        const session = await open();
        const slow = watch(session, promptOf('slow', { chatId: 'c1' }));
        await until(() => slow.text === 'Half ');
        const other = watch(session, promptOf('slow other', { chatId: 'c2' }));
        other.turn.stop();
        rig.go();
        expect(await slow.done).toMatchObject({ outcome: 'finished' });
        expect(slow.text).toBe('Half and whole.');
        expect(await other.done).toMatchObject({ outcome: 'stopped' });
      });

      it('leaves a prompt alone that waits behind the one that is stopped', async () => {
        const session = await open();
        const slow = watch(session, promptOf('slow', { chatId: 'c1' }));
        await until(() => slow.text === 'Half ');
        const other = watch(session, promptOf('echo other', { chatId: 'c2' }));
        slow.turn.stop();
        expect(await slow.done).toMatchObject({ outcome: 'stopped' });
        expect(await other.done).toMatchObject({ outcome: 'finished' });
        expect(other.text).toBe('echo other');
      });

      it('may be called twice, and after the end', async () => {
        const session = await open();
        const slow = watch(session, promptOf('slow'));
        await until(() => slow.text === 'Half ');
        slow.turn.stop();
        slow.turn.stop();
        await slow.done;
        slow.turn.stop();
        const next = watch(session, promptOf('text'));
        await next.done;
        expect(next.text).toBe('Hello, world!');
        next.turn.stop();
      });
    });

    describe('questions', () => {
      const open1 = (status: string) => ({
        type: 'data-question',
        data: { questionId: 'q1', status },
      });

      it('carries the answer, and shows it', async () => {
        const watched = watch(await open(), promptOf('question'));
        await until(() => watched.chunks.some(({ type }) => type === 'data-question'));
        expect(watched.chunks).toContainEqual(expect.objectContaining({ type: 'data-question' }));
        watched.turn.answer({ type: 'answer', questionId: 'q1', answer: 'Yes' });
        expect(await watched.done).toMatchObject({ outcome: 'finished' });
        expect(watched.text).toContain('Answered: Yes');
        const shown = watched.chunks.filter(({ type }) => type === 'data-question');
        expect(shown[0]).toMatchObject(open1('open'));
        expect(shown.at(-1)).toMatchObject(open1('answered'));
      });

      if (isReplica) return;
      it('says that nobody answered in time', async () => {
        const watched = watch(await open(), promptOf('question'));
        await until(() => watched.chunks.some(({ type }) => type === 'data-question'));
        watched.turn.expire?.('q1');
        await until(() =>
          watched.chunks.some(
            (chunk) =>
              chunk.type === 'data-question' &&
              (chunk.data as { status?: string }).status === 'expired',
          ),
        );
        watched.turn.stop();
        await watched.done;
      });
    });

    describe('release', () => {
      it('is the last the sink hears', async () => {
        const session = await open();
        const slow = watch(session, promptOf('slow'));
        await until(() => slow.text === 'Half ');
        slow.turn.stop();
        slow.turn.release();
        const { length } = slow.events;
        rig.go();
        // What comes after it has gone the same way.
        await watch(session, promptOf('text')).done;
        expect(slow.events).toHaveLength(length);
        expect(slow.closed).toEqual([]);
        slow.turn.release();
      });

      it('does not take the place of a stop that was asked for before the turn began', async () => {
        const session = await open();
        const first = watch(session, promptOf('echo first'));
        first.turn.stop();
        first.turn.release();
        const next = watch(session, promptOf('echo next'));
        expect(await next.done).toMatchObject({ outcome: 'finished' });
        expect(next.text).toBe('echo next');
        expect(first.events).toEqual([]);
      });
    });

    it('says whether it can go on with the turns of another process', async () => {
      const session = await open();
      expect(session.attach !== undefined).toBe(canAttach);
    });
    if (canAttach) describeAttaching({ rig: () => rig, open });

    if (hasConnection) {
      it('tells every open turn that the connection dropped', async () => {
        const session = await open();
        const turns = ['drop', 'text', 'text'].map((text, at) =>
          watch(session, promptOf(text, { chatId: `c${at}` })),
        );
        for (const { done, closed } of turns) {
          expect(await done).toMatchObject({ outcome: 'failed' });
          expect(closed).toHaveLength(1);
          expect(closed[0]).toMatchObject({ status: 'failed' });
        }
        expect(session.isClosed).toBe(true);
      });
    }

    if (hasHistory) {
      it('has a history of what was said, without the answer that is being written', async () => {
        const session = await open();
        await watch(session, promptOf('text')).done;
        const slow = watch(session, promptOf('slow'));
        await until(() => slow.text === 'Half ');
        const messages = await session.history?.(ann);
        expect(messages?.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
        rig.go();
        await slow.done;
      });
    }

    describe('close', () => {
      it('holds nothing afterwards', async () => {
        const timers = trackTimers();
        try {
          const session = await open();
          await watch(session, promptOf('text')).done;
          const slow = watch(session, promptOf('slow'));
          await until(() => slow.text === 'Half ');
          slow.turn.stop();
          await slow.done;
          const open1 = watch(session, promptOf('slow'));
          session.close();
          session.close();
          expect(session.isClosed).toBe(true);
          await open1.done;
          await until(() => rig.held() === 0);
          await rig.end?.();
          await until(() => timers.count === 0);
        } finally {
          timers.restore();
        }
      });
    });
  });
}
