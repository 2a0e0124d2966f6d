import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { LeakReport } from '../../test/leak-run.ts';

const RUN = fileURLToPath(new URL('../../test/leak-run.ts', import.meta.url));

describe('a gateway', () => {
  it('[RFC-INT-7.3] holds no more after a thousand turns than before, nor after a hundred at once', async () => {
    // In a process of its own, which has to end by itself.
    const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', RUN], {
      timeout: 58_000,
    });
    const report = JSON.parse(stdout) as LeakReport;
    const { samples, bytesPerTurn, bytesPerTurnAtOnce, before, after } = report;
    console.log(
      [
        `${report.turns} turns one after another: ${bytesPerTurn.toFixed(0)} bytes a turn`,
        `${report.atOnce} turns at once: ${bytesPerTurnAtOnce.toFixed(0)} bytes a turn`,
        `heap in KB: ${samples.map((bytes) => Math.round(bytes / 1024)).join(' ')}`,
        `held at the end: ${JSON.stringify(after)}`,
        `${report.seconds.toFixed(1)} s`,
      ].join('\n'),
    );
    expect(report.finished).toBe(report.warmupTurns + report.turns + report.atOnce);
    expect(samples).toHaveLength(10);
    expect(bytesPerTurn).toBeLessThanOrEqual(1_024);
    expect(bytesPerTurnAtOnce).toBeLessThanOrEqual(1_024);
    expect(after).toEqual(before);
    expect(after).toMatchObject({ timers: 0, connections: 0 });
  });
});
