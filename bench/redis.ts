/**
 * Turns in Redis against `resumable-stream` on the same Redis: as fast as it goes, at the pace of
 * models, and for whoever comes back; then many viewers over three gateways that share the log.
 */
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { hasRedis, startRedis } from '../packages/sabir/test/redis-server.ts';
import { measureBurst } from './redis/burst.ts';
import { measurePaced } from './redis/paced.ts';
import { measureResume } from './redis/resume.ts';
import { measureViewers } from './redis/viewers.ts';
import type { Report } from './report.ts';

const here = createRequire(import.meta.url);

export async function bench(): Promise<Report> {
  if (!hasRedis) {
    return { name: 'redis', bars: [], figures: { redis: 'skipped: there is no redis-server' } };
  }
  const { dependencies } = here('./package.json') as { dependencies: Record<string, string> };
  const [server] = /v=\S+/.exec(String(execFileSync('redis-server', ['--version']))) ?? [];
  const report: Report = {
    name: 'redis',
    bars: [],
    figures: {
      peer: `resumable-stream ${dependencies['resumable-stream']}; both with redis ${dependencies.redis}`,
      machine: `${cpus().length} cores, ${cpus()[0]?.model}; interleaved, medians; redis-server ${server}, nothing on disk`,
    },
  };
  // One after the other, each on a Redis of its own: none is to disturb the next.
  for (const measure of [measureBurst, measurePaced, measureResume, measureViewers]) {
    const redis = await startRedis();
    try {
      const { bars, figures } = await measure(redis.url);
      report.bars.push(...bars);
      Object.assign(report.figures, figures);
    } finally {
      await redis.stop();
    }
  }
  return report;
}
