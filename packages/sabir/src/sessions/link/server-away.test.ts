/** A gateway whose session server cannot be reached for longer than `returnMs`: responses end, turns do not. */
import { expect, it, onTestFinished } from 'vitest';
import { chatBody, openSse, readChunks } from '../../../test/gateway-client.ts';
import { createLinkRig } from '../../../test/link-rig.ts';
import { collect, FAST, SEND } from '../../../test/scripted-transport.ts';
import { until } from '../../../test/upstream-turn.ts';
import { SabirChatTransport } from '../../clients/index.ts';
import type { Chunk } from '../../core/chunks.ts';
import { UPSTREAM_UNREACHABLE } from '../../core/errors.ts';
import { foldChunks } from '../../core/fold.ts';
import { createChatGateway } from '../../gateway/index.ts';
import { memoryTurnLog } from '../../turns/memory.ts';
import { readWritten } from '../../turns/read-written.ts';

const API = 'http://gateway.test/api/sessions/s/chat';

async function setUp() {
  let isAway = false;
  const rig = await createLinkRig({
    host: 'agent',
    nextCut: () => (isAway ? 1 : undefined),
    upstream: { returnMs: 150 },
  });
  const log = memoryTurnLog();
  const gateway = createChatGateway({
    log,
    upstream: rig.upstream,
    authenticate: () => ({ id: 'ann' }),
    access: () => 'owner',
    timing: { disconnectGraceMs: 50, shutdownMs: 0 },
  });
  onTestFinished(async () => {
    await gateway.close();
    await rig.close();
  });
  return {
    rig,
    log,
    request: (url: string, init?: RequestInit) => gateway.fetch(new Request(url, init)),
    goAway() {
      isAway = true;
      rig.proxy.cutAll();
    },
    comeBack() {
      isAway = false;
    },
  };
}

const textOf = (chunks: Chunk[]) =>
  foldChunks(chunks).parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));

it('ends the response with an error that can be retried, and shows the whole turn to a viewer who comes back', async () => {
  const { rig, log, request, goAway, comeBack } = await setUp();
  const body = JSON.stringify(chatBody('slow', { id: 'c' }));
  const response = await request(API, { method: 'POST', body });
  const turnId = response.headers.get('x-sabir-turn') as string;
  const viewer = openSse(response);
  await until(() => viewer.text() === 'Half ');
  goAway();
  await viewer.ended;
  const { userMessage: errorText } = UPSTREAM_UNREACHABLE;
  expect(viewer.chunks().slice(-2)).toMatchObject([{ errorText }, { type: 'finish' }]);
  // Longer than the grace time after which a turn without viewers is stopped.
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(await log.get(turnId)).toMatchObject({ status: 'running' });
  rig.go();
  comeBack();
  let chunks: Chunk[] = [];
  // Until the gateway has reached the server, it goes on to end responses.
  do chunks = await readChunks(await request(`${API}/c/stream`));
  while (chunks.some(({ type }) => type === 'error'));
  expect(textOf(chunks)).toEqual(['Half and whole.']);
  expect(chunks.at(-1)?.type).toBe('finish');
  expect(await readWritten(log, turnId, 0)).toEqual(await rig.stored(turnId));
  expect(rig.prompts()).toHaveLength(1);
});

it('is not noticed by a client that comes back by itself', async () => {
  const { rig, request, goAway, comeBack } = await setUp();
  const transport = new SabirChatTransport({
    api: API,
    backoff: FAST,
    fetch: (url, init) => request(String(url), init),
  });
  const parts = [{ type: 'text' as const, text: 'slow' }];
  const messages = [{ id: 'u', role: 'user' as const, parts }];
  const collected = collect(await transport.sendMessages({ ...SEND, messages }));
  await until(() => rig.prompts().length === 1);
  goAway();
  await new Promise((resolve) => setTimeout(resolve, 600));
  rig.go();
  comeBack();
  const chunks = (await collected) as Chunk[];
  expect(chunks.filter(({ type }) => type === 'error')).toEqual([]);
  expect(textOf(chunks)).toEqual(['Half and whole.']);
  expect(rig.prompts()).toHaveLength(1);
});
