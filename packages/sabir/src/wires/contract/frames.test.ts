import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chunkSequences } from '../../../test/arbitrary-chunks.ts';
import { nextTick } from '../../../test/running-turn.ts';
import { beginTurn, view } from '../../../test/viewing-turn.ts';
import type { Chunk } from '../../core/chunks.ts';
import { LOG_FAILED } from '../../core/errors.ts';
import type { TurnInfo } from '../../turns/log.ts';
import { encodeContract } from './encode.ts';
import type { ContractEvent } from './events.ts';
import { createContractFrames } from './frames.ts';

const META = { runId: 'r' };

/** What the encoder makes of a turn, each with the cursor it has on the wire. */
function eventsOf({ turnId, messageId, startedAt }: TurnInfo, chunks: Chunk[]) {
  const encode = encodeContract({
    meta: META,
    createdAt: new Date(startedAt).toISOString(),
    generateMessageId: () => messageId,
  });
  return chunks.flatMap((chunk, at) => {
    const events = encode(chunk);
    return events.map((event, i) => ({
      seq: at + 1,
      event: asJson(event),
      id: i === events.length - 1 ? `${turnId}:${at + 1}` : undefined,
    }));
  });
}

const asJson = (event: ContractEvent) => JSON.parse(JSON.stringify(event));

describe('createContractFrames', () => {
  it('tells whoever has any cursor what follows it, and nothing else', async () => {
    const input = fc.record({
      chunks: chunkSequences(7, 'whole'),
      at: fc.nat(),
      sizes: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(input, async ({ chunks, at, sizes }) => {
        const turn = await beginTurn();
        const after = at % (chunks.length + 1);
        await turn.writer.append(chunks.slice(0, after));
        const info = await turn.info();
        const encoder = createContractFrames(info, META);
        const viewer = view(turn, info, { after, encoder, pausing: undefined });
        const reading = viewer.readAll();
        for (let i = after, n = 0; i < chunks.length; n++) {
          const size = sizes[n % sizes.length] as number;
          await turn.writer.append(chunks.slice(i, i + size));
          i += size;
          await nextTick();
        }
        await turn.writer.close({ status: 'finished' });
        await reading;
        const told = viewer.frames.map(({ event, data, id }) => ({
          event: { type: event, data: JSON.parse(data) },
          id,
        }));
        const expected = eventsOf(info, chunks).filter(({ seq }) => seq > after);
        expect(told).toEqual(expected.map(({ event, id }) => ({ event, id })));
      }),
      { numRuns: 200 },
    );
  });

  it('sends a viewer with a cursor only the error where its stream ends early', async () => {
    const turn = await (await beginTurn()).info();
    const encoder = createContractFrames(turn, META);
    encoder.skip([
      { seq: 1, chunk: { type: 'start', messageId: 'm' } },
      { seq: 2, chunk: { type: 'text-delta', id: '1', delta: 'a' } },
    ]);
    const viewed = { after: 2, structure: [] };
    const encoders = [encoder, createContractFrames(turn, META)];
    const sent = encoders.map((one) => new TextDecoder().decode(one.farewell(LOG_FAILED, viewed)));
    const { code, retryable, userMessage: message } = LOG_FAILED;
    const data = { message, code, retryable, terminal: true };
    const error = `event: error\ndata: ${JSON.stringify(data)}\n\n`;
    expect(sent).toEqual([error, error]);
    // A farewell is one viewer's: the encoder goes on for the others.
    const more = [{ seq: 3, chunk: { type: 'text-delta', id: '1', delta: 'b' } as const }];
    expect(new TextDecoder().decode(encoder.encode(more))).toContain('"delta":"b"');
  });

  it('says that the run was lost where its log ends before it does', async () => {
    const turn = await beginTurn();
    await turn.writer.append([{ type: 'start', messageId: 'm' }]);
    await turn.writer.close({ status: 'finished' });
    const info = await turn.info();
    const encoder = createContractFrames(info, META);
    const viewer = view(turn, info, { encoder, pausing: undefined });
    await viewer.readAll();
    expect(viewer.frames.map(({ event }) => event)).toEqual(['meta', 'message.start', 'error']);
    expect(viewer.frames.at(-1)?.id).toBe(`${info.turnId}:1`);
    expect(JSON.parse(viewer.frames.at(-1)?.data ?? '')).toMatchObject({
      code: 'turn-lost',
      terminal: true,
    });
  });
});
