import { expect, it, vi } from 'vitest';
import { createSessionRig, settled, textOf } from '../../test/session-rig.ts';
import { parseFrame } from './parse-frame.ts';

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

it('takes what a stack bears, and nothing deeper', () => {
  expect(parseFrame(`{"a":${nested(400)}}`)).toHaveProperty('a');
  expect(() => parseFrame(`{"a":${nested(600)}}`)).toThrow(SyntaxError);
  expect(() => parseFrame(`{"a":"${'['.repeat(2_000)}"}`)).not.toThrow();
});

it('keeps a session from frames that nest too deep', async () => {
  const error = vi.fn();
  const rig = createSessionRig({ logger: { warn: () => undefined, error } });
  const runner = rig.runner('r1');
  const ann = rig.client('ann');
  ann.say({ type: 'prompt', content: 'Hi', promptId: 'p1', turnId: 't1' });
  await settled();
  const deep = nested(6_000);
  const turnId = rig.turnIdOf('t1');
  runner.say(`{"type":"event","event":{"type":"title","title":${deep}}}`);
  const chunk = `{"type":"data-tree","data":${deep}}`;
  runner.say(`{"type":"chunks","turnId":"${turnId}","seq":1,"chunks":[${chunk}]}`);
  const files = `[{"mime":"text/plain","url":"data:,","more":${deep}}]`;
  ann.say(`{"type":"prompt","content":"Hi","attachments":${files}}`);
  runner.text('t1', 'Hello');
  runner.finish('t1');
  await settled();
  expect(ann.last('error')).toMatchObject({ code: 'bad-request' });
  expect(textOf(rig.storage.messages().at(-1))).toBe('Hello');
  expect(error).not.toHaveBeenCalled();
});
