/** What an upstream is held to whose sessions can go on with a turn that another process prompted. */
import { describe, expect, it } from 'vitest';
import { verifyChunks } from '../src/core/verify.ts';
import type { UpstreamSession, User } from '../src/turns/upstream.ts';
import type { UpstreamRig } from './upstream-conformance.ts';
import {
  bob,
  messageOf,
  promptOf,
  takeOver,
  textOf,
  until,
  type Watched,
  watch,
} from './upstream-turn.ts';

type Attaching = {
  rig(): UpstreamRig;
  /** A session of its own each time, as each process has one. */
  open(user?: User): Promise<UpstreamSession>;
};

const placesOf = ({ told }: Watched) =>
  told.filter(({ hasPlace }) => hasPlace).map(({ event, position }) => ({ event, position }));

export function describeAttaching({ rig, open }: Attaching): void {
  const texts = () =>
    rig()
      .prompts()
      .map(({ text }) => text);
  const isAsked = ({ chunks }: Watched) => chunks.some(({ type }) => type === 'data-question');
  const yes = { type: 'answer', questionId: 'q1', answer: 'Yes' } as const;

  /** What both have written, if the first wrote no more than this many of its events. */
  function expectWhole(first: Watched, second: Watched, mark: number): string {
    const written = first.told.filter(({ position }) => position <= mark);
    const log = takeOver(
      written.flatMap(({ chunks }) => chunks),
      mark,
      second.told,
    );
    expect(verifyChunks(log)).toEqual([]);
    expect(messageOf(log)).toEqual(messageOf(second.chunks));
    return textOf(log);
  }

  describe('attach', () => {
    it('tells a turn that runs from its first event, each at its place', async () => {
      const first = await open();
      const prompt = promptOf('slow');
      const begun = watch(first, prompt);
      await until(() => begun.text === 'Half ');
      const second = watch(await open(), prompt, 'attach');
      await until(() => second.text === 'Half ');
      expect(placesOf(second)).toEqual(placesOf(begun));
      expect(placesOf(second).map(({ position }) => position)).toEqual(
        placesOf(second).map((_, at) => at + 1),
      );
      const mark = begun.turn.position ?? 0;
      expect(mark).toBeGreaterThan(0);
      first.close();
      rig().go();
      expect(await second.done).toMatchObject({ outcome: 'finished' });
      for (let at = 0; at <= mark; at++) {
        expect(expectWhole(begun, second, at)).toBe('Half and whole.');
      }
      expect(texts()).toEqual(['slow']);
    });

    it('tells a turn that has ended, and how', async () => {
      const first = await open();
      for (const text of ['text', 'fail', 'echo once']) {
        const prompt = promptOf(text);
        const whole = watch(first, prompt);
        const end = await whole.done;
        const second = watch(await open(), prompt, 'attach');
        expect(await second.done).toEqual(end);
        expect(placesOf(second)).toEqual(placesOf(whole));
        for (let at = 0; at <= (whole.turn.position ?? 0); at++) expectWhole(whole, second, at);
      }
      expect(texts()).toEqual(['text', 'fail', 'echo once']);
    });

    it('sends a prompt that never arrived, and no prompt twice', async () => {
      const prompt = promptOf('echo late');
      const second = watch(await open(), prompt, 'attach');
      expect(await second.done).toMatchObject({ outcome: 'finished' });
      const third = watch(await open(), prompt, 'attach');
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
      if (rig().isSerial) await until(() => begun.turn.isQueued && begun.events.length > 0);
      first.close();
      const second = watch(await open(), prompt, 'attach');
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
      const mark = begun.turn.position ?? 0;
      first.close();
      const second = watch(await open(), prompt, 'attach');
      await until(() => isAsked(second));
      second.turn.answer(yes);
      expect(await second.done).toMatchObject({ outcome: 'finished' });
      expect(expectWhole(begun, second, mark)).toContain('Answered: Yes');
    });

    it('takes an answer and a stop again that it has had already', async () => {
      const first = await open();
      const prompt = promptOf('question');
      const begun = watch(first, prompt);
      await until(() => isAsked(begun));
      begun.turn.answer(yes);
      await until(() => begun.text.includes('Answered: Yes'));
      first.close();
      const second = watch(await open(), prompt, 'attach');
      second.turn.answer(yes);
      second.turn.answer({ ...yes, answer: 'No' });
      expect(await second.done).toMatchObject({ outcome: 'finished' });
      expect(second.text).toContain('Answered: Yes');
      expect(second.closed).toEqual([]);
      const third = watch(await open(), prompt, 'attach');
      third.turn.stop();
      expect(await third.done).toMatchObject({ outcome: 'finished' });
      expect(texts()).toEqual(['question']);
    });

    it('stops a turn that another was to stop, and no other', async () => {
      const first = await open();
      const prompt = promptOf('slow', { chatId: 'c1' });
      const begun = watch(first, prompt);
      await until(() => begun.text === 'Half ');
      const other = watch(await open(), promptOf('echo other', { chatId: 'c2' }));
      begun.turn.stop();
      first.close();
      const session = await open();
      const second = watch(session, prompt, 'attach');
      second.turn.stop();
      expect(await second.done).toMatchObject({ outcome: 'stopped' });
      expect(second.text).toBe('Half ');
      expect(await other.done).toMatchObject({ outcome: 'finished' });
      expect(session.isBusy ?? false).toBe(false);
      const third = watch(await open(), prompt, 'attach');
      expect(await third.done).toMatchObject({ outcome: 'stopped' });
    });

    it('tells nothing after release, nor on a session that is closed', async () => {
      const prompt = promptOf('text');
      const session = await open();
      await watch(session, prompt).done;
      const released = watch(session, prompt, 'attach');
      released.turn.release();
      await watch(session, promptOf('echo next')).done;
      expect([released.events, released.closed]).toEqual([[], []]);
      session.close();
      const late = watch(session, prompt, 'attach');
      expect(await late.done).toMatchObject({ outcome: 'failed' });
      expect([late.events, late.closed.length]).toEqual([[], 1]);
    });

    it('tells nobody else’s turn', async () => {
      const prompt = promptOf('echo hers');
      await watch(await open(), prompt).done;
      const his = watch(await open(bob), { ...prompt, user: bob }, 'attach');
      expect(await his.done).toMatchObject({ outcome: 'failed' });
      expect(placesOf(his)).toEqual([]);
    });
  });
}
