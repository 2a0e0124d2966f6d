import type { Logger } from '../../translator.ts';
import type { OrphanedTurn, TurnInfo } from '../log.ts';
import { closingsOf } from '../lost.ts';
import { startTimer, type Timer } from '../timers.ts';
import { withoutContent } from '../without-content.ts';
import { decodeBatch } from './codec.ts';
import { type Known, readInfo } from './info.ts';
import { createToken, type Keys } from './keys.ts';
import type { Entry } from './mirror.ts';
import type { News } from './news.ts';
import { SEIZE } from './scripts.ts';
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
  readEntries(turnId: string, after: number): Promise<Entry[]>;
  createWriter(info: TurnInfo, token: string, mark: number): RedisTurnWriter;
  logger: Logger | undefined;
};

/** So many are looked at in one round. */
const MOST_LOOKED_AT = 100;

/** Turns whose writer has gone: somebody goes on with them, or they are ended as lost. */
export function createOrphanage(options: OrphanageOptions) {
  const { store, keys, news, leaseMs, liveMs, inbox, look, readEntries, logger } = options;
  const adopters = new Set<Adopt>();
  const settling = new Map<string, Promise<boolean>>();
  let sweeping: Timer | undefined;
  let isSweeping = false;

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
  async function seize(turnId: string, isGivenUp: boolean): Promise<boolean> {
    if (options.isQuiet() && !isGivenUp) return false;
    const token = createToken();
    const { turn } = keys.ofTurn(turnId);
    const argv = [token, leaseMs, inbox, liveMs];
    const reply = await store.insist(() => store.run(SEIZE, [turn], argv), { ms: leaseMs / 2 });
    if (typeof reply === 'string') return true;
    const [now, fields, [origin, mark]] = reply as [unknown, unknown, [string, string]];
    const known = readInfo(turnId, now, fields);
    if (!known) return true;
    const writer = options.createWriter(known.info, token, Number(mark));
    writer.pull();
    const orphan = { turn: known.info, origin: JSON.parse(origin ?? 'null'), mark: Number(mark) };
    if (await isAdopted({ ...orphan, writer })) return true;
    const outcome = { status: 'lost' } as const;
    const entries = await store.ask(() => readEntries(turnId, 0));
    const chunks = entries.flatMap(({ stored }) => decodeBatch(stored));
    const closings = closingsOf(chunks, known.info.messageId, outcome);
    if (closings.length > 0) await writer.append(closings);
    await writer.close(outcome);
    return true;
  }

  /** However many notice it here at once, one sees to it. */
  function settle(turnId: string, isGivenUp = false): Promise<boolean> {
    let doing = settling.get(turnId);
    if (!doing) {
      doing = seize(turnId, isGivenUp).finally(() => settling.delete(turnId));
      settling.set(turnId, doing);
    }
    return doing;
  }

  async function sweep(): Promise<void> {
    const { live } = keys;
    const due = ['ZRANGE', live, '-inf', Date.now(), 'BYSCORE', 'LIMIT', 0, MOST_LOOKED_AT];
    const ids = (await store.ask(() => store.send(live, ...due))) as string[];
    for (const turnId of ids) {
      const known = await store.ask(() => look(turnId));
      if (!known || known.endedAgo !== undefined) {
        await store.ask(() => store.send(live, 'ZREM', live, turnId));
      } else if (known.leaseLeft > 0) {
        const next = Date.now() + known.leaseLeft;
        await store.ask(() => store.send(live, 'ZADD', live, 'XX', next, turnId));
      } else await settle(turnId);
    }
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

  function onGivenUp(turnId: string): void {
    settle(turnId, true).catch((error) => {
      logger?.warn('a turn could not be taken', { turnId, error: withoutContent(error) });
    });
  }

  return {
    settle,
    adoptBy(adopt: Adopt): () => void {
      adopters.add(adopt);
      if (!sweeping) {
        sweeping = startTimer(Math.max(leaseMs / 2, 50), () => void sweepOnce());
        news.listen(keys.orphans, onGivenUp, () => void sweepOnce()).catch(() => undefined);
      }
      return () => void adopters.delete(adopt);
    },
    close(): void {
      adopters.clear();
      sweeping?.clear();
    },
  };
}
