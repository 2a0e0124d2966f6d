/** What an operator is told, on stderr: stdout has the summary and nothing else. */
import type { Logger } from '../translator.ts';

export const LOG_LEVELS = ['info', 'warn', 'error', 'json'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

type Level = 'info' | 'warn' | 'error';
const RANKS: Record<Level, number> = { info: 0, warn: 1, error: 2 };

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
      const told = Object.fromEntries(
        Object.entries(details).map(([name, value]) => [name, toPlain(value)]),
      );
      if (level === 'json') write(JSON.stringify({ time, level: at, message, ...told }));
      else write([time, at, message, ...Object.entries(told).map(toPair)].join(' '));
    };
  return { info: logAt('info'), warn: logAt('warn'), error: logAt('error') };
}

/** An error's own fields may hold what was asked: only its name and message are told. */
function toPlain(value: unknown): unknown {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  return value;
}

function toPair([name, value]: [string, unknown]): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return `${name}=${/[\s"]/.test(text ?? '') ? JSON.stringify(text) : text}`;
}
