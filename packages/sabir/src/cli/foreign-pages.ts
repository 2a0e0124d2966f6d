/** Tells the operator which pages of other origins are kept out, and which flag lets them in. */
import type { Logger } from '../core/translator.ts';
import { isOwnPage } from '../gateway/origin.ts';
import type { ServeOptions } from './serve-flags.ts';

/** A stranger can name any number of origins: so many are logged, each once. */
const MAX_ORIGINS = 100;
const MAX_LENGTH = 200;

/** Looks at every request. A browser asks before it sends (`OPTIONS`), and shows its page no more than that it failed. */
export function createForeignPageLog(cors: ServeOptions['cors'], logger: Required<Logger>) {
  const logged = new Set<string>();
  return (request: Request): void => {
    const origin = request.headers.get('origin')?.slice(0, MAX_LENGTH);
    if (origin === undefined || cors === '*' || cors.includes(origin)) return;
    if (isOwnPage(request, origin) || logged.has(origin) || logged.size >= MAX_ORIGINS) return;
    logged.add(origin);
    logger.warn(
      'a page of another origin was refused. If it is yours, start the server with this flag',
      { origin, flag: `--cors ${origin}` },
    );
  };
}
