import { SabirError, TURN_FENCED } from '../../core/errors.ts';
import { startTimer, type Timer } from '../../core/timers.ts';
import type { Logger } from '../../core/translator.ts';
import { withoutContent } from '../../core/without-content.ts';
import { decodeBatch } from '../chunk-codec.ts';
import { closingsOf } from '../closings.ts';
import type { OrphanedTurn, TurnInfo } from '../log.ts';
import { type Known, readInfo } from './info.ts';
import { createToken, type Keys } from './keys.ts';
import type { Entry } from './mirror.ts';
import type { News } from './news.ts';
import { DUE, SEIZE } from './scripts.ts';
import type { Store } from './store.ts';
import type { RedisTurnWriter } from './writer.ts';

type Adopt = (orphan: OrphanedTurn) => Promise<boolean>;

type OrphanageOptions = {
  store: Store;
  keys: Keys;
  news: News;
  leaseMs: number;
  liveMs: number;
  /** Where this process is told of commands. */
  inbox: string;
  /** Writers may have been kept from renewing their leases: nothing is taken from them yet. */
  isQuiet(): boolean;
  look(turnId: string): Promise<Known | undefined>;
  /** Somebody should look at it, after so long. */
  lookAt(turnId: string, afterMs: number): Promise<unknown>;
  readEntries(turnId: string, after: number): Promise<Entry[]>;
  createWriter(
    info: TurnInfo,
    token: string,
    mark: number,
    progress: string | undefined,
  ): RedisTurnWriter;
  logger: Logger | undefined;
};

/** So many are looked at in one round, and so many of them at once. */
const MOST_DUE = 10_000;
const MOST_AT_ONCE = 100;

/** Turns whose writer has gone: somebody goes on with them, or they are ended as lost. */
export function createOrphanage(options: OrphanageOptions) {
  const { store, keys, news, leaseMs, liveMs, inbox, look, readEntries, logger } = options;
  const adopters = new Set<Adopt>();
  const settling = new Map<string, Promise<boolean>>();
  let sweeping: Timer | undefined;
  let isSweeping = false;
  /** Whoever saw to them here is about to end, and leaves them to others. */
  let isRetired = false;
  let isClosed = false;

  async function isAdopted(orphan: OrphanedTurn): Promise<boolean> {
    for (const adopt of adopters) {
      try {
        if (await adopt(orphan)) return true;
      } catch (error) {
        const { turnId } = orphan.turn;
        logger?.error?.('the turn could not be gone on with', {
          turnId,
          error: withoutContent(error),
        });
      }
    }
    return false;
  }

  /** True if something has become of it: it is gone on with or over, here or elsewhere. */
  async function seize(turnId: string): Promise<boolean> {
    if (isRetired || isClosed) return false;
    const token = createToken();
    const { turn, chunks } = keys.ofTurn(turnId);
    const argv = [token, leaseMs, inbox, liveMs];
    // One that is said again after Redis was away may come before the writer's own renewal.
    const run = () => store.run(SEIZE, [turn, chunks], [...argv, options.isQuiet() ? 1 : 0]);
    let reply: unknown;
    try {
      reply = await store.insist(run, { ms: leaseMs / 2 });
    } catch (error) {
      if (options.isQuiet()) return false;
      throw error;
    }
    if (typeof reply === 'string') return reply !== 'QUIET';
    const [now, fields, [origin, mark]] = reply as [unknown, unknown, [string, string]];
    const known = readInfo(turnId, now, fields);
    if (!known) return true;
    const writer = options.createWriter(known.info, token, Number(mark), known.progress);
    writer.pull();
    const orphan = { turn: known.info, origin: JSON.parse(origin ?? 'null'), mark: Number(mark) };
    if (await isAdopted({ ...orphan, writer })) return true;
    // Who would have gone on with it here has just left: that is no reason to end it.
    if (isClosed || isRetired) {
      await writer.release();
      return true;
    }
    await endAsLost(known.info, writer);
    return true;
  }

  async function endAsLost({ turnId, messageId }: TurnInfo, writer: RedisTurnWriter) {
    const outcome = { status: 'lost' } as const;
    try {
      const entries = await store.ask(() => readEntries(turnId, 0));
      const chunks = entries.flatMap(({ stored }) => decodeBatch(stored));
      const closings = closingsOf(chunks, messageId, outcome);
      if (closings.length > 0) await writer.append(closings);
      await writer.close(outcome);
    } catch (error) {
      // Somebody else sees to it.
      writer.drop();
      if (!(error instanceof SabirError) || error.code !== TURN_FENCED.code) throw error;
    }
  }

  /** However many notice it here at once, one sees to it. */
  function settle(turnId: string): Promise<boolean> {
    let doing = settling.get(turnId);
    if (!doing) {
      doing = seize(turnId).finally(() => settling.delete(turnId));
      settling.set(turnId, doing);
    }
    return doing;
  }

  async function sweep(): Promise<void> {
    const ids = (await store.ask(() => store.run(DUE, [keys.live], [MOST_DUE]))) as string[];
    for (let from = 0; from < ids.length && !isClosed; from += MOST_AT_ONCE) {
      // One that cannot be looked at does not keep the others from it.
      const some = ids.slice(from, from + MOST_AT_ONCE);
      const looked = await Promise.allSettled(some.map(lookAfter));
      for (const one of looked) if (one.status === 'rejected') throw one.reason;
    }
  }

  async function lookAfter(turnId: string): Promise<void> {
    const { live } = keys;
    const known = await store.ask(() => look(turnId));
    if (!known || known.endedAgo !== undefined) {
      await store.ask(() => store.send(live, 'ZREM', live, turnId));
    } else if (known.leaseLeft > 0) await store.ask(() => options.lookAt(turnId, known.leaseLeft));
    else settleMeanwhile(turnId);
  }

  async function sweepOnce(): Promise<void> {
    if (isSweeping) return;
    isSweeping = true;
    try {
      await sweep();
    } catch (error) {
      logger?.warn('turns could not be looked after', { error: withoutContent(error) });
    } finally {
      isSweeping = false;
    }
  }

  /** Nobody waits for it: whoever adopts it may take their time. */
  function settleMeanwhile(turnId: string): void {
    settle(turnId).catch((error) => {
      logger?.warn('a turn could not be taken', { turnId, error: withoutContent(error) });
    });
  }

  return {
    settle,
    adoptBy(adopt: Adopt): () => void {
      adopters.add(adopt);
      if (!sweeping) {
        sweeping = startTimer(Math.max(leaseMs / 2, 50), () => void sweepOnce());
        news.listen(keys.orphans, settleMeanwhile, () => void sweepOnce()).catch(() => undefined);
      }
      isRetired = false;
      return () => {
        adopters.delete(adopt);
        isRetired = adopters.size === 0;
      };
    },
    close(): void {
      isClosed = true;
      adopters.clear();
      sweeping?.clear();
    },
  };
}
