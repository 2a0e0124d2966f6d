import { LOG_UNAVAILABLE, SabirError } from '../../core/errors.ts';
import { startTimeout, startTimer, steadyNow, type Timer } from '../../core/timers.ts';
import { createAppends } from './appends.ts';
import type { Link } from './client.ts';
import { isPassing, toLogError } from './refusals.ts';
import { runScript, type Script } from './scripts.ts';

export type StoreOptions = {
  /** How long whoever asks for something waits for Redis. */
  answerMs: number;
  /** How long whoever has something to keep tries again. */
  outageMs: number;
  /** Redis did not take something; whether it may yet. */
  onTrouble(failure: SabirError, isPassing: boolean): void;
};

export type Store = ReturnType<typeof createStore>;

type Waiting = { until: number; giveUp(): void };

/** How late it may be noticed that an answer is late. */
const LOOK_MS = 25;
const LEAST_RETRY_MS = 20;
const MOST_RETRY_MS = 500;
/**
 * Commands to Redis, which may be away: those that ask give up soon and say so; those that keep
 * something are said again until it is there.
 */
export function createStore(link: Link, { answerMs, outageMs, onTrouble }: StoreOptions) {
  /** Those whose answer is waited for; looked at by one clock, since there is one for every append. */
  const waiting = new Set<Waiting>();
  let clock: Timer | undefined;
  /** For those that wait for a connection. */
  let connected: PromiseWithResolvers<void> | undefined;

  function look(): void {
    const now = steadyNow();
    if (link.isReady) onReady();
    if (waiting.size === 0) {
      clock?.clear();
      clock = undefined;
    }
    for (const one of waiting) if (one.until <= now) one.giveUp();
  }

  /** At once: what takes back what was given up comes right behind it, if that was sent after all. */
  function onReady(): void {
    connected?.resolve();
    connected = undefined;
  }

  /** Nothing is left in a client's queue that nobody may wait for by the time it is sent. */
  async function untilReady(ms = answerMs): Promise<void> {
    if (link.isReady) return;
    connected ??= Promise.withResolvers();
    await within(ms, connected.promise);
  }

  /** One that may hang: a connection that is as good as lost. */
  function within<T>(ms: number, doing: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const one = {
        until: steadyNow() + ms,
        giveUp() {
          waiting.delete(one);
          reject(new SabirError(LOG_UNAVAILABLE, undefined, { cause: { why: link.trouble } }));
        },
      };
      waiting.add(one);
      clock ??= startTimer(LOOK_MS, look);
      doing.then(
        (answer) => {
          waiting.delete(one);
          resolve(answer);
        },
        (error) => {
          waiting.delete(one);
          reject(error);
        },
      );
    });
  }

  /** A connection that has just been lost may be back in time. */
  function ask<T>(send: () => Promise<T>, ms = answerMs): Promise<T> {
    return insist(send, { ms });
  }

  /** For whoever may leave or end meanwhile: `isWanted` is asked before each try. */
  async function insist<T>(
    send: () => Promise<T>,
    { ms = outageMs, isWanted = () => true }: { ms?: number; isWanted?: () => boolean } = {},
  ): Promise<T> {
    const until = steadyNow() + ms;
    const left = () => Math.max(0, until - steadyNow());
    let wait = LEAST_RETRY_MS;
    for (;;) {
      try {
        if (!link.isReady) await untilReady(left());
        return await within(left(), send());
      } catch (error) {
        const failure = toLogError(error, link.trouble);
        const mayPass = isPassing(error);
        if (failure.code === LOG_UNAVAILABLE.code) onTrouble(failure, mayPass);
        if (!mayPass || !isWanted() || steadyNow() + wait >= until) throw failure;
      }
      await new Promise<void>((resolve) => void startTimeout(wait, resolve));
      wait = Math.min(MOST_RETRY_MS, wait * 2);
    }
  }

  return {
    ask,
    insist,
    append: createAppends(link),
    untilReady,
    onReady,
    run: (script: Script, keys: string[], args: (string | number)[]) =>
      runScript(link, script, keys, args),
    send: (key: string, ...args: (string | number)[]) => link.send(key, args.map(String)),
  };
}
