import { afterThisTick } from '../../core/timers.ts';
import type { Link } from './client.ts';
import { isPassing, refusalOf } from './refusals.ts';
import { APPEND, runScript } from './scripts.ts';

type Append = {
  keys: string[];
  args: (string | number)[];
  resolve(reply: unknown): void;
  reject(error: unknown): void;
};

/** So that Redis is not kept from everybody else for long. */
const MOST_TURNS = 50;
const MOST_LENGTH = 256 * 1024;
/** Where among the arguments that is. */
const STORED = 4;

/**
 * What all turns of this process append in one tick goes to Redis as one step: a step costs more
 * than what is written in it. In a cluster the turns are on different servers, and each goes alone.
 */
export function createAppends(link: Link) {
  let isAlone = link.isCluster;
  let due: Append[] = [];

  function flush(): void {
    const all = due;
    due = [];
    for (let from = 0; from < all.length; ) {
      let to = from;
      let length = 0;
      while (to < all.length && to - from < MOST_TURNS && length < MOST_LENGTH) {
        length += lengthOf(all[to++] as Append);
      }
      void run(all.slice(from, to));
      from = to;
    }
  }

  async function run(group: Append[]): Promise<void> {
    const keys = group.flatMap((one) => one.keys);
    const args = group.flatMap((one) => one.args);
    try {
      const replies = (await runScript(link, APPEND, keys, args)) as unknown[];
      for (const [at, { resolve }] of group.entries()) resolve(replies[at]);
    } catch (error) {
      // A cluster behind something that looks like one server.
      isAlone ||= refusalOf(error) === 'CROSSSLOT';
      // What is refused for the sake of one is not refused to the others. Those it came to before
      // that one find themselves.
      if (group.length > 1 && !isPassing(error)) for (const one of group) void run([one]);
      else for (const { reject } of group) reject(error);
    }
  }

  return (keys: string[], args: (string | number)[]): Promise<unknown> =>
    new Promise((resolve, reject) => {
      due.push({ keys, args, resolve, reject });
      if (isAlone) flush();
      else if (due.length === 1) afterThisTick(flush);
    });
}

/** Nearly all of it is what is stored. */
function lengthOf({ args }: Append): number {
  return `${args[STORED]}`.length;
}
