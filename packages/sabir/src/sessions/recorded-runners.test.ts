/** Recorded runners of deployed servers, on a session of ours. */
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { comparable } from '../../test/comparable.ts';
import { readJsonl } from '../../test/jsonl.ts';
import { createSessionRig, settled } from '../../test/session-rig.ts';
import { foldChunks } from '../core/fold.ts';
import type { UIMessage } from '../core/message.ts';
import { verifyChunks } from '../core/verify.ts';
import { toHistory } from '../sources/agent-ops/history.ts';
import { createAgentOpsTranslator } from '../sources/agent-ops/translate.ts';

const FOLDER = new URL('../../test/fixtures/agent-ops-recordings/', import.meta.url);
const RUNS = readdirSync(FOLDER).filter((name) => name.endsWith('.runner.jsonl'));

type Line = { msg: { type: string; questionId?: string; messageId?: string } };

/** Plays what a runner has sent; the prompt comes where the recorded one came. */
async function play(name: string, dialect: 'auto' | 'v2' | 'snapshot') {
  const lines = readJsonl(new URL(name, FOLDER)) as Line[];
  const rig = createSessionRig();
  const runner = rig.foreignRunner();
  const ann = rig.client('ann', { hasSnapshots: dialect !== 'v2' });
  const begin = lines.findIndex(({ msg }) => msg.type === 'channel-session-created');
  const promptId = lines.find(({ msg }) => msg.messageId)?.msg.messageId ?? 'p1';
  for (const [index, { msg }] of lines.entries()) {
    if (index === begin) ann.say({ type: 'prompt', content: 'Hi', promptId, turnId: 't1' });
    // The recorded person stopped it, and so does ours.
    if (msg.type === 'aborted') ann.say({ type: 'abort' });
    runner.say(msg);
    await settled();
    if (msg.type === 'question')
      ann.say({ type: 'answer', questionId: msg.questionId, answer: 'Yes' });
    await settled();
  }
  // One recording ends while the agent still waits.
  if (!rig.agent.isIdle) {
    ann.say({ type: 'abort' });
    runner.say({ type: 'aborted' });
  }
  const translator = createAgentOpsTranslator({ dialect, promptId, messageId: 't1' });
  const chunks = ann.events.flatMap((event) => translator.push(event));
  expect(translator.stats).toEqual({ unknown: {}, malformed: {} });
  const [, stored] = toHistory(rig.storage.messages(), {});
  return { chunks, ended: translator.ended, stored, rig };
}

/** Without ids of parts, which count from where one came in, and when a question would end. */
function common(message: UIMessage | undefined): unknown {
  return JSON.parse(
    JSON.stringify(comparable(message as UIMessage), (key, value) =>
      key === 'id' || key === 'expiresAt' ? undefined : value,
    ),
  );
}

describe.each(RUNS)('%s', (name) => {
  it('is told alike in both dialects, and kept as it was told [RUN-08]', async () => {
    const { chunks, ended, stored, rig } = await play(name, 'v2');
    expect(ended).toBe(true);
    expect(verifyChunks(chunks)).toEqual([]);
    const live = foldChunks(chunks);
    expect(live.id).toBe('t1');
    expect(common(stored)).toEqual(common(live));
    expect(rig.agent.isIdle).toBe(true);
    for (const dialect of ['auto', 'snapshot'] as const) {
      const other = await play(name, dialect);
      expect(verifyChunks(other.chunks)).toEqual([]);
      expect(common(foldChunks(other.chunks)), dialect).toEqual(common(live));
    }
    const expected = /abort|head-question/.test(name) ? 'stopped' : 'finished';
    expect(live.metadata).toMatchObject({ outcome: expected });
  });
});
