/**
 * What an upstream is held to whose sessions can go on with a turn that another process prompted: `attach` tells what
 * follows what is written, and nothing before it.
 */
import { describe, expect, it } from 'vitest';
import type { UpstreamSession, User, Written } from '../src/turns/upstream.ts';
import type { UpstreamRig } from './upstream-conformance.ts';
import {
  bob,
  NOTHING_WRITTEN,
  promptOf,
  textOf,
  until,
  type Watched,
  watch,
  writtenOf,
} from './upstream-turn.ts';

type Attaching = {
  rig(): UpstreamRig;
  /** A session of its own each time, as each process has one. */
  open(user?: User): Promise<UpstreamSession>;
};

export function describeAttaching({ rig, open }: Attaching): void {
  const texts = () =>
    rig()
      .prompts()
      .map(({ text }) => text);
  const isAsked = ({ chunks }: Watched) => chunks.some(({ type }) => type === 'data-question');
  const yes = { type: 'answer', questionId: 'q1', answer: 'Yes' } as const;

  describe('attach', () => {
    it.each(['text', 'fail', 'echo once'])(
      'adds to every beginning of an ended turn exactly the rest of it: %s',
      async (text) => {
        const prompt = promptOf(text);
        const whole = watch(await open(), prompt);
        const end = await whole.done;
        const stored = await rig().stored?.(prompt.turnId);
        if (stored) expect(whole.chunks).toEqual(stored);
        const session = await open();
        for (let cut = 0; cut < whole.told.length; cut++) {
          const written = writtenOf(whole, cut);
          const second = watch(session, prompt, written);
          expect(await second.done).toEqual(end);
          expect([...written.chunks, ...second.chunks]).toEqual(whole.chunks);
          expect(second.closed).toEqual([]);
        }
        expect(texts()).toEqual([text]);
      },
    );

    it('goes on with a turn that runs, behind every beginning of it', async () => {
      const first = await open();
      const prompt = promptOf('slow');
      const begun = watch(first, prompt);
      await until(() => begun.text === 'Half ');
      const beginnings = begun.told.map((_, cut) => writtenOf(begun, cut + 1));
      const { length } = begun.chunks;
      first.close();
      const seconds: { written: Written; watched: Watched }[] = [];
      for (const written of [NOTHING_WRITTEN, ...beginnings]) {
        const watched = watch(await open(), prompt, written);
        seconds.push({ written, watched });
        await until(() => written.chunks.length + watched.chunks.length === length);
      }
      rig().go();
      for (const { written, watched } of seconds) {
        expect(await watched.done).toMatchObject({ outcome: 'finished' });
        const log = [...written.chunks, ...watched.chunks];
        expect(textOf(log)).toBe('Half and whole.');
        expect(log).toEqual(seconds[0]?.watched.chunks);
        const stored = await rig().stored?.(prompt.turnId);
        if (stored) expect(log).toEqual(stored);
      }
      expect(texts()).toEqual(['slow']);
    });

    it('sends a prompt that never arrived, and no prompt twice', async () => {
      const prompt = promptOf('echo late');
      const second = watch(await open(), prompt, NOTHING_WRITTEN);
      expect(await second.done).toMatchObject({ outcome: 'finished' });
      const third = watch(await open(), prompt, NOTHING_WRITTEN);
      await third.done;
      expect([second.text, third.text]).toEqual(['echo late', 'echo late']);
      expect(texts()).toEqual(['echo late']);
    });

    it('goes on with a prompt that waits', async () => {
      const slow = watch(await open(), promptOf('slow', { chatId: 'c1' }));
      await until(() => slow.text === 'Half ');
      const first = await open();
      const prompt = promptOf('echo second', { chatId: 'c2' });
      const begun = watch(first, prompt);
      if (rig().isSerial) await until(() => begun.turn.isQueued);
      first.close();
      const second = watch(await open(), prompt, NOTHING_WRITTEN);
      if (rig().isSerial) await until(() => second.turn.isQueued);
      rig().go();
      expect(await second.done).toMatchObject({ outcome: 'finished' });
      expect(second.text).toBe('echo second');
      expect(texts()).toEqual(['slow', 'echo second']);
    });

    it('carries the answer to a question that was asked before', async () => {
      const first = await open();
      const prompt = promptOf('question');
      const begun = watch(first, prompt);
      await until(() => isAsked(begun));
      const written = writtenOf(begun);
      first.close();
      const second = watch(await open(), prompt, written);
      second.turn.answer(yes);
      expect(await second.done).toMatchObject({ outcome: 'finished' });
      expect(second.text).toContain('Answered: Yes');
      const stored = await rig().stored?.(prompt.turnId);
      if (stored) expect([...written.chunks, ...second.chunks]).toEqual(stored);
    });

    it('takes an answer and a stop again that it has had already', async () => {
      const first = await open();
      const prompt = promptOf('question');
      const begun = watch(first, prompt);
      await until(() => isAsked(begun));
      begun.turn.answer(yes);
      await until(() => begun.text.includes('Answered: Yes'));
      first.close();
      const second = watch(await open(), prompt, NOTHING_WRITTEN);
      second.turn.answer(yes);
      second.turn.answer({ ...yes, answer: 'No' });
      expect(await second.done).toMatchObject({ outcome: 'finished' });
      expect(second.text).toContain('Answered: Yes');
      expect(second.closed).toEqual([]);
      const third = watch(await open(), prompt, NOTHING_WRITTEN);
      third.turn.stop();
      expect(await third.done).toMatchObject({ outcome: 'finished' });
      expect(texts()).toEqual(['question']);
    });

    it('stops a turn that another process was to stop, and no other', async () => {
      const first = await open();
      const prompt = promptOf('slow', { chatId: 'c1' });
      const begun = watch(first, prompt);
      await until(() => begun.text === 'Half ');
      const other = watch(await open(), promptOf('echo other', { chatId: 'c2' }));
      begun.turn.stop();
      first.close();
      const session = await open();
      const second = watch(session, prompt, NOTHING_WRITTEN);
      second.turn.stop();
      expect(await second.done).toMatchObject({ outcome: 'stopped' });
      expect(second.text).toBe('Half ');
      expect(await other.done).toMatchObject({ outcome: 'finished' });
      await until(() => !session.isBusy);
      const third = watch(await open(), prompt, NOTHING_WRITTEN);
      expect(await third.done).toMatchObject({ outcome: 'stopped' });
    });

    it('tells nothing after release, nor on a session that is closed', async () => {
      const prompt = promptOf('text');
      const session = await open();
      await watch(session, prompt).done;
      const released = watch(session, prompt, NOTHING_WRITTEN);
      released.turn.release();
      await watch(session, promptOf('echo next')).done;
      expect([released.events, released.closed]).toEqual([[], []]);
      session.close();
      const late = watch(session, prompt, NOTHING_WRITTEN);
      expect(await late.done).toMatchObject({ outcome: 'failed' });
      expect([late.events, late.closed.length]).toEqual([[], 1]);
    });

    it('tells a user nothing of another user’s turn', async () => {
      const prompt = promptOf('echo hers');
      await watch(await open(), prompt).done;
      const his = watch(await open(bob), { ...prompt, user: bob }, NOTHING_WRITTEN);
      expect(await his.done).toMatchObject({ outcome: 'failed' });
      expect(his.events).toEqual([]);
    });
  });
}
