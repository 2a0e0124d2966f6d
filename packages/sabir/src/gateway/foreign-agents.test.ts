import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createLogSpy,
  createTestGateway,
  createUser,
  eventually,
  readChunks,
} from '../../test/gateway-client.ts';
import { verifyChunks } from '../core/verify.ts';
import { createChunkTranslator } from '../sources/ai-sdk/translate.ts';
import type { TurnSink, UpstreamTurn } from '../turns/upstream.ts';
import { asUpstream, type ChatGatewayOptions, type Upstream } from './index.ts';

type FinishedTurn = Parameters<NonNullable<ChatGatewayOptions['onFinish']>>[0];

const fail = (): never => {
  throw new Error('a bug in somebody else’s code');
};
const reject = (async () => fail()) as unknown as () => void;

/** An agent that says half a text, then `later`; parts of its turn are replaced with `broken`. */
function createForeign(broken: (turn: UpstreamTurn) => object, later?: (sink: TurnSink) => void) {
  const heard: string[] = [];
  const upstream: Upstream = {
    open: async () => ({
      isClosed: false,
      prompt(prompt, sink) {
        const turn: UpstreamTurn = {
          translator: createChunkTranslator({ messageId: prompt.messageId }),
          isQueued: false,
          stop: (reason) => void heard.push(`stop ${(reason as { code?: string })?.code}`),
          answer: () => undefined,
          release: () => void heard.push('release'),
        };
        setTimeout(() => {
          sink.event({ type: 'text-start', id: '1' });
          sink.event({ type: 'text-delta', id: '1', delta: 'half' });
          // Called from a timer: what it throws would be an uncaught exception.
          setTimeout(() => later?.(sink), 1);
        });
        return Object.defineProperties(turn, Object.getOwnPropertyDescriptors(broken(turn)));
      },
      close: reject,
    }),
  };
  return { upstream, heard };
}

async function run({ upstream }: { upstream: Upstream }, timing = {}) {
  const { lines, logger } = createLogSpy();
  const finished: FinishedTurn[] = [];
  const onFinish = (turn: FinishedTurn) => void finished.push(turn);
  const gateway = createTestGateway(upstream, {
    logger,
    onFinish,
    timing: { lingerMs: 0, ...timing },
  });
  const chunks = await readChunks(await createUser(gateway, 'carl').post(chatBody('hi')));
  expect(verifyChunks(chunks)).toEqual([]);
  const { outcome } = await eventually(() => finished[0], 'onFinish');
  const metrics = await createUser(gateway, 'carl').metrics();
  expect(metrics.sabir_live_turns).toBe(0);
  return { outcome, types: chunks.map(({ type }) => type), logged: lines.map((l) => l.message) };
}

/** A translator that breaks when it has said half of its text. */
function breaking(how: object) {
  return ({ translator }: UpstreamTurn) => {
    const broken = Object.create(translator, Object.getOwnPropertyDescriptors(how));
    let count = 0;
    return {
      translator: {
        push: (event: unknown) => (++count > 2 ? broken.push(event) : translator.push(event)),
        end: (outcome: never) => broken.end(outcome),
        get ended() {
          return count > 2 ? broken.ended : translator.ended;
        },
        get stats() {
          return broken.stats;
        },
      },
    };
  };
}

const FAILED = { status: 'failed', code: 'translator-failed' };
const sayMore = (sink: TurnSink) => sink.event({ type: 'text-delta', id: '1', delta: '!' });

describe('an agent whose code breaks its contract', () => {
  it.each<[string, object]>([
    ['push throws', { push: fail }],
    ['push gives nothing', { push: () => undefined }],
    ['push gives null as a chunk', { push: () => [null] }],
    ['push gives a delta without its text', { push: () => [{ type: 'start' }, null] }],
    [
      'ended throws',
      {
        get ended() {
          return fail();
        },
      },
    ],
    ['push and end throw', { push: fail, end: fail }],
  ])(
    'translator, %s: the turn fails with its parts closed, and the agent is stopped',
    async (_, how) => {
      const foreign = createForeign(breaking(how), sayMore);
      const { outcome, types, logged } = await run(foreign);
      expect(outcome).toMatchObject(FAILED);
      expect(types).toEqual(expect.arrayContaining(['text-delta', 'text-end', 'error', 'finish']));
      expect(foreign.heard).toEqual(['stop translator-failed', 'release']);
      expect(logged).toContain('the translator of the agent failed');
    },
  );

  it('position throws: the turn fails with its parts closed', async () => {
    let isBroken = false;
    const position = {
      get position() {
        return isBroken ? fail() : undefined;
      },
    };
    const { outcome } = await run(
      createForeign(
        () => position,
        (sink) => {
          isBroken = true;
          sayMore(sink);
        },
      ),
    );
    expect(outcome).toMatchObject(FAILED);
  });

  it.each<[string, object]>([
    ['end throws', { end: fail }],
    ['end gives null as a chunk', { end: () => [null] }],
  ])('translator, %s: the turn keeps its outcome, with its parts closed', async (_, how) => {
    const stop = (sink: TurnSink) => sink.close({ status: 'stopped' });
    const { outcome, types } = await run(createForeign(breaking(how), stop));
    expect(outcome).toEqual({ status: 'stopped' });
    expect(types).toEqual(expect.arrayContaining(['text-delta', 'text-end', 'finish']));
  });

  it.each<[string, object]>([
    ['stats throws', breakingStats(fail)],
    ['stats is no object', breakingStats(() => 'garbage')],
  ])('translator, %s: the turn ends, and is counted', async (_, how) => {
    const end = (sink: TurnSink) => sink.close({ status: 'finished' });
    expect((await run(createForeign(breaking(how), end))).outcome.status).toBe('finished');
  });

  it.each<[string, object]>([
    ['throw', { stop: fail, release: fail }],
    ['reject', { stop: reject, release: reject }],
  ])('stop and release %s: the turn ends all the same', async (_, how) => {
    const { outcome, logged } = await run(
      createForeign(() => how),
      { idleMs: 30 },
    );
    expect(outcome).toMatchObject({ status: 'failed', code: 'upstream-silent' });
    await eventually(() => logged.includes('a call to the agent failed: release'), 'the log line');
  });

  it('isQueued throws: the turn counts as running, and its idle limit holds', async () => {
    const how = {
      get isQueued() {
        return fail();
      },
    };
    const { outcome } = await run(
      createForeign(() => how),
      { idleMs: 30 },
    );
    expect(outcome).toMatchObject({ status: 'failed', code: 'upstream-silent' });
  });

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['a promise that rejects', 'reject'],
    ['an object without a translator', { stop: fail, release: fail }],
  ])('prompt gives %s: the turn fails', async (_, given) => {
    const prompt = () => (given === 'reject' ? reject() : given) as UpstreamTurn;
    const upstream = { open: async () => ({ isClosed: false, prompt, close: fail }) };
    const { outcome } = await run({ upstream });
    expect(outcome).toMatchObject({ status: 'failed', code: 'upstream-dropped' });
  });

  it('an iterator throws when it is left: the turn is stopped all the same', async () => {
    const { lines, logger } = createLogSpy();
    const iterator = { next: () => new Promise<never>(() => undefined), return: reject };
    const upstream = asUpstream(() => ({ [Symbol.asyncIterator]: () => iterator }) as never);
    const gateway = createTestGateway(upstream, { logger });
    const carl = createUser(gateway, 'carl');
    const reading = readChunks(await carl.post(chatBody('hi')));
    await eventually(() => lines.some(({ message }) => message === 'turn began'));
    await carl.stop();
    expect((await reading).at(-1)).toMatchObject({ type: 'finish' });
  });
});

function breakingStats(stats: () => unknown): object {
  return {
    get stats() {
      return stats();
    },
  };
}
