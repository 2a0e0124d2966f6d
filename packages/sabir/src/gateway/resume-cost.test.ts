import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  eventually,
  openSse,
} from '../../test/gateway-client.ts';
import type { Chunk } from '../core/chunks.ts';
import { memoryTurnLog } from './index.ts';

const ASKING: Chunk[] = [
  { type: 'tool-input-available', toolCallId: 'c', toolName: 'pay', input: {} },
  { type: 'data-question', id: 'a', data: { questionId: 'a', status: 'open' } },
  { type: 'tool-approval-request', toolCallId: 'c', approvalId: 'a' },
];

/** A turn that has said something, and from where its log is read for whoever resumes then. */
async function resumeAfter(said: Chunk[], { major = '7', isResuming = true, isHere = true } = {}) {
  const log = memoryTurnLog();
  const read: number[] = [];
  const counted: typeof log = {
    ...log,
    read(turnId, after, signal) {
      read.push(after);
      return log.read(turnId, after, signal);
    },
  };
  const agent = createAgent();
  const gateway = createTestGateway(agent.upstream, { log: counted });
  const other = createTestGateway(agent.upstream, { log: counted });
  const begun = openSse(await createUser(gateway, 'carl').post(chatBody('go')));
  const run = await agent.run();
  run.delta('Hello');
  run.say(...said);
  const seen = said.length + 3;
  await eventually(() => begun.frames.findLast(({ id }) => id?.endsWith(`:${seen}`)), 'all of it');
  const cursor = begun.frames.findLast(({ id }) => id)?.id as string;
  read.length = 0;
  const carl = createUser(isHere ? gateway : other, 'carl');
  const headers = { ...(isResuming && { 'x-sabir-resume': '0' }), 'x-sabir-ai-sdk': major };
  const sse = openSse(await carl.resumeAt(cursor, 'c1', { headers }));
  return { sse, run, read, seen };
}

describe('a client of 7 that resumes at its cursor', () => {
  it.each([{ isHere: true }, { isHere: false }])(
    'is read only what follows, where nothing was asked before: %j',
    async (how) => {
      const { sse, run, read, seen } = await resumeAfter([], how);
      run.delta(' world');
      await sse.until(() => sse.text());
      expect(sse.text()).toBe(' world');
      expect(read.filter((after) => after < seen)).toEqual([]);
      // It is let go all the same at what is asked from then on.
      run.say(...ASKING, { type: 'finish-step' });
      await sse.ended;
      expect(sse.chunks().at(-1)).toMatchObject({ type: 'finish', finishReason: 'tool-calls' });
    },
  );

  it('is read all of it where something was asked, also only half', async () => {
    const { sse, run, read } = await resumeAfter(ASKING.slice(0, 2));
    expect(read).toContain(0);
    run.say(...ASKING.slice(2), { type: 'finish-step' });
    await sse.ended;
    expect(sse.chunks().at(-1)).toMatchObject({ type: 'finish', finishReason: 'tool-calls' });
  });

  it.each([{ major: '6' }, { isResuming: false }])(
    'is read all of it where that may matter: %j',
    async (how) => {
      const { sse, run, read } = await resumeAfter([], how);
      expect(read).toContain(0);
      run.delta(' world');
      await sse.until(() => sse.text());
      expect(sse.text()).toBe(' world');
    },
  );
});
