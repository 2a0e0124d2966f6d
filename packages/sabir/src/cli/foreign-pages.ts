/** Logs which pages of other origins are refused, and which flag allows them. */
import type { Logger } from '../core/translator.ts';
import type { ServeOptions } from './serve-flags.ts';

/** A client can name any number of origins: so many are logged, each once. */
const MAX_ORIGINS = 100;
const MAX_LENGTH = 200;

/** A browser shows its page no more than that the request failed. */
export function createForeignPageLog(cors: ServeOptions['cors'], logger: Required<Logger>) {
  const logged = new Set<string>();
  return (given: string): void => {
    const origin = given.slice(0, MAX_LENGTH);
    if (logged.has(origin) || logged.size >= MAX_ORIGINS) return;
    logged.add(origin);
    logger.warn(...toAdvice(origin, cors));
  };
}

function toAdvice(origin: string, cors: ServeOptions['cors']): [string, Record<string, string>] {
  if (cors === '*') {
    return [
      'a page of another origin was refused because it sent cookies. With --cors "*", send a token without cookies',
      { origin },
    ];
  }
  // The origin of a file or a sandboxed frame is "null"; `--cors` takes that of a web server only.
  if (!URL.canParse(origin) || new URL(origin).origin !== origin) {
    return [
      'a page of another origin was refused, and --cors cannot name its origin. If it is yours, serve it over HTTP',
      { origin },
    ];
  }
  return [
    'a page of another origin was refused. If it is yours, start the server with this flag',
    { origin, flag: `--cors ${origin}` },
  ];
}
