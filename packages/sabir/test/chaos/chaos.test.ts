/** The short form of `npm run chaos`: 200 faults. */
import { expect, it } from 'vitest';
import { hasRedis } from '../redis-server.ts';
import { faultCount, toStory, toText, verdictOf } from './report.ts';
import { runChaos } from './run.ts';

const WHY_NOT = hasRedis ? '' : ' (skipped: redis-server is not installed)';

it.skipIf(!hasRedis)(
  `loses and doubles nothing while gateways, Redis and connections fail${WHY_NOT} [PRF-01]`,
  { timeout: 300_000 },
  async () => {
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
    const report = await runChaos({
      faults: 200,
      seed,
      minutes: 4,
      atOnce: 20,
      log: 'redis',
      client: 'redis',
      appendfsync: 'always',
      onFailure: (failure) => console.log(toStory(failure).join('\n')),
    });
    console.log(toText(report));
    expect(verdictOf(report), `seed ${seed}`).toEqual([]);
    expect(faultCount(report)).toBeGreaterThanOrEqual(200);
  },
);
