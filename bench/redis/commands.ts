/** How many commands Redis ran, by its own count. */
import { createClient } from 'redis';

export type Commands = {
  /** Since it was asked last: all of them, those inside of scripts as well, and how many scripts. */
  since(): Promise<{ all: number; listening: number; scripts: number }>;
};

const LISTENING = new Set(['subscribe', 'unsubscribe']);
const SCRIPTS = new Set(['eval', 'evalsha']);

export async function countCommands(url: string): Promise<Commands> {
  const client = createClient({ url });
  await client.connect();
  return {
    async since() {
      const stats = String(await client.sendCommand(['INFO', 'commandstats']));
      await client.sendCommand(['CONFIG', 'RESETSTAT']);
      let all = 0;
      let listening = 0;
      let scripts = 0;
      for (const [, name = '', calls] of stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
        // Our own.
        if (name === 'info' || name.startsWith('config')) continue;
        all += Number(calls);
        if (LISTENING.has(name)) listening += Number(calls);
        if (SCRIPTS.has(name)) scripts += Number(calls);
      }
      return { all, listening, scripts };
    },
  };
}
