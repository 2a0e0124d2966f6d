import { expect, it, onTestFinished, vi } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  openSse,
} from '../../test/gateway-client.ts';
import { memoryTurnLog } from './index.ts';

const MINUTE = 60_000;
const tick = () => new Promise((resolve) => setTimeout(resolve, 260));

it.each([
  ['forward by 40 s', 40_000],
  ['forward by a day', 24 * 60 * MINUTE],
  ['back by an hour', -60 * MINUTE],
])('a wall clock set %s loses no running turn', async (_, step) => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const agent = createAgent();
  // The watchdog looks at the clock every 250 ms.
  const gateway = createTestGateway(agent.upstream, { timing: { idleMs: 1_000 } });
  const carl = createUser(gateway, 'carl');
  const first = openSse(await carl.post(chatBody('hi')));
  const run = await agent.run();
  run.delta('a');
  await first.until(() => first.text());
  await tick();
  vi.setSystemTime(Date.now() + step);
  await tick();
  const second = openSse(await carl.resume());
  run.delta('b');
  run.end();
  await Promise.all([first.ended, second.ended]);
  for (const { chunks, text } of [first, second]) {
    expect(text()).toBe('ab');
    expect(chunks().at(-1)).toMatchObject({ type: 'finish' });
    expect(chunks().some(({ type }) => type === 'error')).toBe(false);
  }
});

it('the live turns of a chat or session are found without a look at 30,000 others', async () => {
  const log = memoryTurnLog();
  const begin = async (sessionId: string, chatId: string, requestId: string) => {
    const begun = await log.begin({ sessionId, chatId, requestId, messageId: requestId });
    if (!('writer' in begun)) throw new Error('It has begun before.');
    return begun.writer;
  };
  for (let n = 0; n < 30_000; n++) {
    const writer = await begin(`other ${n % 1_000}`, `c${n % 10}`, `${n}`);
    if (n % 10 !== 0) await writer.close({ status: 'finished' });
  }
  const mine = await begin('s1', 'c1', 'mine');
  const time = async (ask: () => Promise<unknown>) => {
    const start = performance.now();
    for (let n = 0; n < 100; n++) await ask();
    return (performance.now() - start) / 100;
  };
  const found = [await log.live('s1'), await log.live('s1', 'c1')];
  expect(found).toEqual(Array(2).fill([expect.objectContaining({ turnId: mine.turnId })]));
  // It took 23 ms; 0.01 ms is usual now.
  expect(await time(async () => log.live('s1'))).toBeLessThan(1);
  expect(await time(async () => log.live('s1', 'c1'))).toBeLessThan(1);
  await log.close();
});
