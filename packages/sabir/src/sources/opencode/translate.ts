import { toSafeLogger } from '../../core/safe-logger.ts';
import {
  countSkipped,
  type Logger,
  type Translator,
  type TranslatorStats,
} from '../../core/translator.ts';
import type { OpenCodeEvent } from './events.ts';
import { createOpenCodeReader } from './read-events.ts';
import { createSignalWriter, type SignalWriterOptions } from './write-signals.ts';

export interface OpenCodeOptions extends SignalWriterOptions {
  /** Only events of this session are read. Default: the session of the first message. */
  sessionId?: string;
  /** The last message of the turns before: nothing up to it is part of this one. */
  after?: string;
  logger?: Logger;
}

/** OpenCode events → chunks, for one turn of one session. */
export function createOpenCodeTranslator(options: OpenCodeOptions = {}): Translator<OpenCodeEvent> {
  const writer = createSignalWriter(options);
  const { sessionId, after } = options;
  const reader = createOpenCodeReader({ sessionId, after, signal: writer.write });
  const logger = toSafeLogger(options.logger);
  const stats: TranslatorStats = { unknown: {}, malformed: {} };

  function count(kind: keyof TranslatorStats, type: string): void {
    const key = countSkipped(stats, kind, type);
    if (key) logger?.warn(`${kind} OpenCode event`, { type: key });
  }

  return {
    stats,
    get ended() {
      return writer.isEnded;
    },
    push(event) {
      if (writer.isEnded) return [];
      const { repairs } = writer;
      let type = '(no type)';
      let problem: keyof TranslatorStats | undefined = 'malformed';
      try {
        const given = (event as { type?: unknown } | null | undefined)?.type;
        if (typeof given === 'string') type = given;
        problem = reader.read(event);
        if (writer.repairs !== repairs) problem = 'malformed';
      } catch {
        // A proxy or a getter of somebody else's event threw: the rest of the turn is still good.
      }
      if (problem) count(problem, type);
      return writer.take();
    },
    end(outcome) {
      writer.end(outcome);
      return writer.take();
    },
  };
}
