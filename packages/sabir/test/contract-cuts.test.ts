/** The contract's clients on a real gateway, over real TCP that is cut anywhere. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ChatStream } from '../src/clients/chat-stream.ts';
import { ContractChatTransport } from '../src/clients/contract-chat-transport.ts';
import type { Chunk } from '../src/core/chunks.ts';
import { foldChunks } from '../src/core/fold.ts';
import { asUpstream, createChatGateway } from '../src/gateway/index.ts';
import { serve } from '../src/platforms/node/serve.ts';
import { chunkSequences } from './arbitrary-chunks.ts';
import { comparable } from './comparable.ts';
import { CHUNK_FIXTURES } from './contract-fixtures.ts';
import { type Cut, type CuttingProxy, startCuttingProxy } from './cutting-proxy.ts';
import { CLIENTS, createClient, type TransportLike } from './real-clients.ts';

const plays = new Map<string, Chunk[]>();
const cuts = new Map<string, Cut[]>();
const seen = { cuts: 0, midFrame: 0 };
let proxy: CuttingProxy;
let close: () => Promise<unknown>;

beforeAll(async () => {
  const gateway = createChatGateway({
    upstream: asUpstream(async function* ({ text }) {
      for (const [index, chunk] of (plays.get(text) ?? []).entries()) {
        yield chunk;
        // Some of it in one tick, some in the next.
        if (index % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    }),
    authenticate: () => ({ id: 'user' }),
    access: () => 'owner',
  });
  const server = await serve({ fetch: gateway.fetch });
  proxy = await startCuttingProxy({
    port: server.port,
    onRequest: ({ viewer }) => cuts.get(viewer)?.shift(),
    onCut({ body }) {
      seen.cuts++;
      if (body.length > 0 && !body.toString().endsWith('\n\n')) seen.midFrame++;
    },
  });
  close = async () => {
    await proxy.close();
    await server.close();
    await gateway.close();
  };
});
afterAll(() => close());

let cases = 0;

/** Plays the turn to a client whose responses are cut so; gives its name and how to reach it. */
function play(chunks: Chunk[], planned: Cut[]) {
  const name = `case-${++cases}`;
  plays.set(name, chunks);
  cuts.set(name, [...planned]);
  return { name, api: `${proxy.url}/api/chat`, headers: { 'x-viewer': name } };
}

async function answered(chunks: Chunk[], planned: Cut[]) {
  const { name, api, headers } = play(chunks, planned);
  const chat = new ChatStream({ api, headers, id: name, maxWaitMs: 1 });
  await chat.sendMessage(name);
  const { messages, status, error } = chat.getSnapshot();
  return { message: messages[1], status, error: error?.message };
}

const cut = fc.record({
  how: fc.constantFrom<Cut['how']>('reset', 'close', 'end'),
  inHead: fc.constant<boolean>(false),
  at: fc.oneof(fc.nat({ max: 60 }), fc.nat({ max: 2_000 })),
  quietMs: fc.constant(20),
});

it('gives the same message as without a cut, wherever it is cut and how often', async () => {
  await fc.assert(
    fc.asyncProperty(
      chunkSequences(5, 'whole'),
      fc.array(cut, { minLength: 1, maxLength: 5 }),
      fc.boolean(),
      async (chunks, planned, isFirstInHead) => {
        // Before anybody knows that there is a turn.
        if (isFirstInHead) planned.unshift({ how: 'reset', inHead: true, at: 30, quietMs: 20 });
        const whole = await answered(chunks, []);
        const { message, ...rest } = await answered(chunks, planned);
        expect(rest).toEqual({ status: whole.status, error: whole.error });
        expect({ ...message, id: '' }).toEqual({ ...whole.message, id: '' });
      },
    ),
    { numRuns: Number(process.env.CONTRACT_CUTS ?? 300), endOnFailure: true },
  );
  console.log(`${seen.cuts} cuts, ${seen.midFrame} in mid-frame`);
  expect(seen.cuts).toBeGreaterThan(200);
  expect(seen.midFrame / seen.cuts).toBeGreaterThan(0.3);
});

const FINISHED = CHUNK_FIXTURES.filter(
  ({ name, chunks }) =>
    name.startsWith('open-harness/') &&
    chunks.at(-1)?.type === 'finish' &&
    !chunks.some(({ type }) => type === 'error'),
);

it.each(CLIENTS)(
  'gives a real useChat of $name the same message over the contract',
  async ({ name }) => {
    for (const { chunks } of FINISHED.slice(0, 12)) {
      const how = { how: 'close', inHead: false, at: 300, quietMs: 20 } as const;
      const { name: chatId, api, headers } = play(chunks, [how]);
      const transport = new ContractChatTransport({
        api,
        headers,
        backoff: { initialMs: 1, maxMs: 2 },
      });
      const { chat, result } = await createClient(name, transport as unknown as TransportLike);
      await chat.sendMessage({ text: chatId });
      const { status, error, message } = result();
      expect({ status, error }).toEqual({ status: 'ready', error: undefined });
      const id = message?.id ?? '';
      expect(comparable(message)).toEqual(comparable({ ...foldChunks(chunks), id }));
    }
  },
);
