import { expect, it, vi } from 'vitest';
import { createSessionRig, settled } from '../../test/session-rig.ts';
import { parseFrame } from './parse-frame.ts';

const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

it('takes what a stack bears, and nothing deeper', () => {
  expect(parseFrame(`{"a":${nested(400)}}`)).toHaveProperty('a');
  expect(() => parseFrame(`{"a":${nested(600)}}`)).toThrow(SyntaxError);
  expect(() => parseFrame(`{"a":"${'['.repeat(2_000)}"}`)).not.toThrow();
});

it('keeps a session from what nobody could write down again', async () => {
  const error = vi.fn();
  const rig = createSessionRig({ logger: { warn: () => undefined, error } });
  const runner = rig.runner('r1');
  const ann = rig.client('ann');
  ann.say({ type: 'prompt', content: 'Hi', promptId: 'p1', turnId: 't1' });
  const deep = nested(6_000);
  runner.say(`{"type":"title","title":${deep}}`);
  const call = '"type":"message.part.tool-update","turnId":"t1","callId":"c","toolName":"x"';
  runner.say(`{${call},"status":"completed","result":${deep}}`);
  const files = `[{"mime":"text/plain","url":"data:,","more":${deep}}]`;
  ann.say(`{"type":"prompt","content":"Hi","attachments":${files}}`);
  runner.say({ type: 'message.part.text-delta', turnId: 't1', delta: 'Hello' });
  runner.say({ type: 'message.finalize', turnId: 't1', reason: 'end_turn' });
  await settled();
  expect(ann.last('error')).toMatchObject({ code: 'bad-request' });
  expect(rig.storage.messages().at(-1)).toMatchObject({ id: 't1', content: 'Hello' });
  expect(error).not.toHaveBeenCalled();
});
