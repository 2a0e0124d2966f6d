/** Recorded runners of deployed servers, on a session of ours. */
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { comparable } from '../../test/comparable.ts';
import { readJsonl } from '../../test/jsonl.ts';
import { createSessionRig, settled } from '../../test/session-rig.ts';
import { foldChunks } from '../core/fold.ts';
import type { UIMessage } from '../core/message.ts';
import { verifyChunks } from '../core/verify.ts';
import { createAgentOpsTranslator } from '../sources/agent-ops/translate.ts';
import { toUIMessage } from './index.ts';

const FOLDER = new URL('../../test/fixtures/agent-ops-recordings/', import.meta.url);
const RUNS = readdirSync(FOLDER).filter((name) => name.endsWith('.runner.jsonl'));

type Event = { type: string; questionId?: string; messageId?: string; turnId?: string };

const eventsOf = (name: string) =>
  (readJsonl(new URL(name, FOLDER)) as { msg: Event }[]).map(({ msg }) => msg);

const answered = (questionId: string | undefined) => ({
  type: 'status',
  data: { questionAnswered: questionId, answer: 'Yes' },
});

/** Plays a recording to a session; the prompt comes where the recorded one came. */
async function play(name: string, hasSnapshots: boolean) {
  const events = eventsOf(name);
  const rig = createSessionRig();
  const runner = rig.foreignRunner();
  const ann = rig.client('ann', { hasSnapshots });
  const begin = events.findIndex(({ type }) => type === 'channel-session-created');
  const promptId = events.find(({ messageId }) => messageId)?.messageId ?? 'p1';
  for (const [index, event] of events.entries()) {
    if (index === begin) ann.say({ type: 'prompt', content: 'Hi', promptId, turnId: 't1' });
    // The recorded user stopped the turn, and so does ours.
    if (event.type === 'aborted') ann.say({ type: 'abort' });
    await settled();
    runner.say(event);
    await settled();
    if (event.type !== 'question') continue;
    ann.say({ type: 'answer', questionId: event.questionId, answer: 'Yes' });
    await settled();
  }
  // One recording ends while its agent still waits.
  if (!rig.session.isIdle) ann.say({ type: 'abort' });
  await settled();
  return { rig, ann };
}

/** The message that the runner's own events make, without a session between. */
function expectedMessage(name: string): UIMessage {
  const translator = createAgentOpsTranslator({ dialect: 'v2', messageId: 't1' });
  const events = eventsOf(name).flatMap((event) =>
    event.type === 'question' ? [event, answered(event.questionId)] : [event],
  );
  const chunks = events.flatMap((event) => translator.push(event));
  if (!translator.ended) chunks.push(...translator.end({ status: 'stopped' }));
  return foldChunks(chunks);
}

/**
 * Without what the session adds or V2 has its own word for: the time at which a question expires, and why a turn was
 * stopped (`aborted` of a runner, `canceled` for a client).
 */
function common(message: UIMessage | undefined): unknown {
  const { outcome } = Object(message?.metadata) as { outcome?: string };
  const isLeftOut = (key: string) =>
    key === 'expiresAt' || (key === 'reason' && outcome === 'stopped');
  return JSON.parse(
    JSON.stringify(comparable(message), (key, value) => (isLeftOut(key) ? undefined : value)),
  );
}

describe.each(RUNS)('%s', (name) => {
  it('is stored as the message that its events make [RUN-08]', async () => {
    const { rig } = await play(name, false);
    const [, stored] = rig.storage.messages();
    expect(rig.session.isIdle).toBe(true);
    expect(common(stored && toUIMessage(stored))).toEqual(common(expectedMessage(name)));
    const outcome = /abort|head-question/.test(name) ? 'stopped' : 'finished';
    expect(stored?.metadata).toMatchObject({ outcome });
  });

  it.each(['v2', 'auto', 'snapshot'] as const)(
    'is shown to a client that reads %s as the message that is stored [RUN-08]',
    async (dialect) => {
      const { rig, ann } = await play(name, dialect !== 'v2');
      const [, stored] = rig.storage.messages();
      const translator = createAgentOpsTranslator({ dialect, turnId: 't1' });
      const chunks = ann.events.flatMap((event) => translator.push(event));
      expect(translator.ended).toBe(true);
      expect(translator.stats).toEqual({ unknown: {}, malformed: {} });
      expect(verifyChunks(chunks)).toEqual([]);
      expect(common(foldChunks(chunks))).toEqual(common(stored && toUIMessage(stored)));
    },
  );
});
