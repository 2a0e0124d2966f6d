import { toSafeLogger } from '../../core/safe-logger.ts';
import type { Logger } from '../../core/translator.ts';
import { checkClient, type RedisClient } from './client.ts';

export type RedisTurnLogOptions = {
  /**
   * A connected client of `redis` or of `ioredis`, or of a cluster. Yours: it is not closed. A
   * second connection is opened beside it with `duplicate()`, to listen.
   */
  client: RedisClient;
  /** What the names of all keys begin with. Default `sabir`. */
  prefix?: string;
  /** A turn past it is refused. 16 MB unless set. */
  maxTurnBytes?: number;
  /** How long an ended turn can still be read. A minute unless set. */
  retentionMs?: number;
  /** How much of ended turns is kept in all; the oldest go first. 256 MB unless set. */
  retainedBytes?: number;
  /** For how long a request that is sent again gets the turn that answered it. 10 s unless set. */
  dedupeMs?: number;
  /**
   * How long nothing may be heard of a turn's gateway before another takes the turn, or ends it. 10 s
   * unless set: longer than the longest pause that a gateway may make.
   */
  leaseMs?: number;
  /** How long a request waits for Redis before it is refused. 3 s unless set. */
  answerMs?: number;
  /** How long running turns and their viewers wait for Redis to come back. A minute unless set. */
  outageMs?: number;
  logger?: Logger;
};

const MEGABYTE = 1024 * 1024;
/** Processes pause for as long, and renewals take their time. */
const LEAST_LEASE_MS = 100;
/** As long as for ever: a number that Redis can still add to its clock. */
const FOREVER_MS = 1e12;

/** With what is meant where nothing is said. What cannot be meant is refused by its name. */
export function readOptions(options: RedisTurnLogOptions) {
  checkClient((options as RedisTurnLogOptions | undefined)?.client);
  const { client, prefix = 'sabir' } = options;
  const { maxTurnBytes = 16 * MEGABYTE, retainedBytes = 256 * MEGABYTE } = options;
  const { leaseMs = 10_000, retentionMs = 60_000, dedupeMs = 10_000 } = options;
  const { answerMs = 3_000, outageMs = 60_000 } = options;
  return {
    client,
    logger: toSafeLogger(options.logger),
    prefix: prefixOf(prefix),
    maxTurnBytes: bytesOf('maxTurnBytes', maxTurnBytes),
    retainedBytes: bytesOf('retainedBytes', retainedBytes),
    leaseMs: timeOf('leaseMs', leaseMs, LEAST_LEASE_MS),
    retentionMs: timeOf('retentionMs', retentionMs),
    dedupeMs: timeOf('dedupeMs', dedupeMs),
    answerMs: timeOf('answerMs', answerMs),
    outageMs: timeOf('outageMs', outageMs),
  };
}

function prefixOf(prefix: unknown): string {
  if (typeof prefix === 'string' && prefix !== '') return prefix;
  throw new TypeError(`redisTurnLog: prefix must be a text, not ${JSON.stringify(prefix)}.`);
}

function bytesOf(name: string, bytes: unknown): number {
  if (typeof bytes === 'number' && bytes >= 0) return bytes;
  throw new TypeError(`redisTurnLog: ${name} must be a number of bytes, not ${bytes}.`);
}

/** Redis counts whole ones. */
function timeOf(name: string, ms: unknown, least = 0): number {
  if (typeof ms === 'number' && ms >= least) return Math.ceil(Math.min(ms, FOREVER_MS));
  const atLeast = least > 0 ? `at least ${least} ` : '';
  throw new TypeError(`redisTurnLog: ${name} must be ${atLeast}milliseconds, not ${ms}.`);
}
