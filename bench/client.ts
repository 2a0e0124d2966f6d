/**
 * What a client does with an answer, ours and those of `@ai-sdk/react`: bytes to chunks, chunks to
 * a message that somebody watches, and both hooks in a browser. The same turns for all, in turns.
 */
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { measureBrowser } from './client/browser.ts';
import { measureDecode } from './client/decode.ts';
import { measureInput, measureText, measureTextBytes, measureTools } from './client/growth.ts';
import { measurePaced } from './client/paced.ts';
import type { Report } from './report.ts';

const here = createRequire(import.meta.url);
const versionOf = (name: string) => here(`${name}/package.json`).version as string;

export async function bench(): Promise<Report> {
  const report: Report = {
    name: 'client',
    bars: [],
    figures: {
      peers: `7: @ai-sdk/react ${versionOf('ai-sdk-react-v7')}, ai ${versionOf('ai-v7')}; 6: @ai-sdk/react ${versionOf('ai-sdk-react-v6')}, ai ${versionOf('ai-v6')}`,
      machine: `${cpus().length} cores, ${cpus()[0]?.model}; interleaved, medians`,
    },
  };
  // One after the other: none is to disturb the next.
  for (const measure of [
    measureDecode,
    measureText,
    measureTextBytes,
    measureTools,
    measureInput,
    measurePaced,
    measureBrowser,
  ]) {
    const { bars, figures } = await measure();
    report.bars.push(...bars);
    Object.assign(report.figures, figures);
  }
  return report;
}
