/** Several gateways on one Redis: each has a client and a log of its own, as if in its own process. */
import { afterEach } from 'vitest';
import type { TurnLog, TurnWriter } from '../src/turns/log.ts';
import { type RedisTurnLogOptions, redisTurnLog } from '../src/turns/redis/index.ts';
import { type ClientKind, type OpenClient, openClient } from './redis-clients.ts';
import { hasRedis } from './redis-server.ts';

export type Gateway = { log: TurnLog; client: OpenClient['client'] };

/** For titles: why nothing is tested. */
export const IF_REDIS = hasRedis ? '' : ' (left out: there is no redis-server)';

let prefixes = 0;

/** Opens gateways that are closed when the test is over; all of one test share their keys. */
export function useGateways(kind: ClientKind, port: () => number) {
  const opened: (Gateway & { close(): Promise<void> })[] = [];
  let prefix = `gateways ${++prefixes}`;

  afterEach(async () => {
    await Promise.all(opened.splice(0).map((gateway) => gateway.close()));
    prefix = `gateways ${++prefixes}`;
  });

  return {
    get prefix() {
      return prefix;
    },
    async open(
      options: Partial<RedisTurnLogOptions> = {},
      at = port(),
      retryMs?: number,
    ): Promise<(typeof opened)[number]> {
      const { client, close } = await openClient(kind, at, retryMs);
      const log = redisTurnLog({ client, prefix, ...options });
      const gateway = {
        log,
        client,
        async close() {
          await log.close();
          close();
        },
      };
      opened.push(gateway);
      return gateway;
    },
    async openMany(count: number, options: Partial<RedisTurnLogOptions> = {}) {
      const gateways = await Promise.all(Array.from({ length: count }, () => this.open(options)));
      return gateways.map(({ log }) => log);
    },
  };
}

/** Keeps a turn's lease until it is told to stop. */
export function keepRenewing(writer: TurnWriter): { stop(): void; failures: unknown[] } {
  const failures: unknown[] = [];
  const timer = setInterval(() => {
    writer.renew().catch((error) => failures.push(error));
  }, writer.renewMs);
  return { failures, stop: () => clearInterval(timer) };
}

/** Waits until something holds; says what did not. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = 10_000,
): Promise<void> {
  const end = Date.now() + withinMs;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`it never came to this: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** One command, whichever client it is. */
export function send(client: OpenClient['client'], ...args: string[]): Promise<unknown> {
  if ('call' in client) return client.call(...(args as [string, ...string[]]));
  if ('masters' in client) return client.sendCommand(args[1] ?? '', false, args);
  return client.sendCommand(args);
}
