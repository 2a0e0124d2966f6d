/** What an operator is told, on stderr: stdout has the summary and nothing else. */
import { toSafeLogger } from '../core/safe-logger.ts';
import type { Logger } from '../core/translator.ts';

export const LOG_LEVELS = ['info', 'warn', 'error', 'json'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

type Level = 'info' | 'warn' | 'error';
const RANKS: Record<Level, number> = { info: 0, warn: 1, error: 2 };

/**
 * What could end a line, move a terminal's cursor, or show text in another order than it has: C0 and C1
 * controls, DEL, the line separators of Unicode, and its marks of direction.
 */
const UNSAFE = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** `json` is one object a line, from `info` up, for machines that collect logs. */
export function createLog(
  level: LogLevel,
  write: (line: string) => void,
  now = () => new Date(),
): Required<Logger> {
  const least = RANKS[level === 'json' ? 'info' : level];
  const logAt =
    (at: Level) =>
    (message: string, details: Record<string, unknown> = {}) => {
      if (RANKS[at] < least) return;
      const time = now().toISOString();
      const line =
        level === 'json'
          ? JSON.stringify({ time, level: at, message, ...details })
          : [time, at, message, ...Object.entries(details).map(toPair)].join(' ');
      write(escapeControls(line));
    };
  return toSafeLogger({ info: logAt('info'), warn: logAt('warn'), error: logAt('error') });
}

function toPair([name, value]: [string, unknown]): string {
  const isPlain = typeof value === 'string' && !/[\s"]/.test(value);
  return `${name}=${isPlain ? value : JSON.stringify(value)}`;
}

export function escapeControls(text: string): string {
  const toEscape = (character: string) =>
    `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return text.replace(UNSAFE, toEscape);
}
