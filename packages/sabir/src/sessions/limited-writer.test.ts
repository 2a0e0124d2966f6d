import { expect, it } from 'vitest';
import { createSessionRig, settled, textOf } from '../../test/session-rig.ts';

const ASK = { type: 'prompt', content: 'Hi', promptId: 'p1', turnId: 't1' };

it.each([
  ['turnBytes', { turnBytes: 1_000 }, 'turn-too-large'],
  ['turnQuestions', { turnQuestions: 5 }, 'turn-too-large'],
  ['sessionBytes', { sessionBytes: 1_000 }, 'session-full'],
])('fails a turn whose questions exceed %s', async (limit, limits, code) => {
  const exceeded: string[] = [];
  const rig = createSessionRig({ limits, onLimit: (name) => void exceeded.push(name) });
  const runner = rig.runner();
  const ann = rig.client();
  ann.say(ASK);
  await settled();
  for (let n = 1; n <= 20; n++) {
    runner.ask('t1', `q${n}`, { text: 'x'.repeat(100) });
    await settled();
  }
  expect(ann.of('message.finalize')).toMatchObject([{ reason: 'error', code }]);
  expect(ann.of('question').length).toBeLessThan(10);
  expect(exceeded).toEqual([limit]);
  expect(runner.of('stop')).toHaveLength(1);
  // What closed the turn is in the log, and in the history.
  expect((await rig.chunksOf('t1')).at(-1)?.type).toBe('finish');
  expect(rig.storage.messages().at(-1)).toMatchObject({ id: 't1', metadata: { code } });
  expect(rig.session.isIdle).toBe(true);
});

it('takes many small chunks that come in one frame', async () => {
  const rig = createSessionRig({ limits: { eventBytes: 500 } });
  const runner = rig.runner();
  rig.client().say(ASK);
  await settled();
  const delta = { type: 'text-delta', id: 'words', delta: 'x'.repeat(100) } as const;
  runner.chunks('t1', ...Array.from({ length: 20 }, () => delta));
  runner.finish('t1');
  await settled();
  expect(textOf(rig.storage.messages().at(-1))).toHaveLength(2_000);
});
