import { countSkipped, type Logger, type TranslatorStats } from '../core/translator.ts';
import { parseFrame } from './parse-frame.ts';
import type { RunnerDialect, RunnerSaid } from './runner-dialect.ts';

/** Reads the frames of a session's runners. What makes no sense is skipped, and logged once for each type. */
export function createRunnerFrames(sessionId: string, logger: Logger | undefined) {
  const skipped: TranslatorStats = { unknown: {}, malformed: {} };

  function skip(type: string): undefined {
    const key = countSkipped(skipped, 'malformed', type.slice(0, 100));
    if (key) logger?.warn('a frame of the runner was skipped', { sessionId, type: key });
  }

  return {
    read(frame: string, dialect: RunnerDialect): RunnerSaid | undefined {
      let value: unknown;
      try {
        value = parseFrame(frame);
      } catch {
        return skip('(no JSON)');
      }
      const said = dialect.read(value);
      return said.kind === 'malformed' ? skip(said.type) : said;
    },
  };
}
