/** Plays the targets one after the other, and notes whatever goes wrong. Runs in a worker. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { randomOf, seedOf } from './random.ts';
import { HANG_MS, Hang, InvalidOutput, type Target } from './target.ts';

export type FuzzOptions = {
  seed: number;
  /** Malformed frames, over all targets. */
  frames: number;
  /** Raw requests to the server, and as many connections for WebSockets. */
  requests: number;
  /** Nothing but this target, */
  only?: string | undefined;
  /** and of it nothing but this round. */
  round?: number | undefined;
};

/** A round in which something was wrong once. */
export type Replay = { target: string; seed: number; round: number };

export type Failure = {
  target: string;
  round: number;
  kind: 'crash' | 'hang' | 'invalid';
  message: string;
};

export type Row = {
  target: string;
  frames: number;
  sound: number;
  refused: number;
  out: number;
  seconds: number;
  failures: Failure[];
};

/** A target that fails again and again has said enough. */
const MAX_FAILURES = 5;
/** What a target may leave behind in memory; some keep what they begin with. */
const MAX_KEPT_BYTES = 150_000_000;
/** Looking takes time: fewer frames could not leave as much. */
const FRAMES_WORTH_A_LOOK = 5_000;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function usedBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

const PROTOTYPES = [Object.prototype, Array.prototype, Function.prototype, String.prototype];
const keysNow = () => PROTOTYPES.map((prototype) => Reflect.ownKeys(prototype));
const KEYS = keysNow();

/** What all objects inherit is as it was; what was put there is taken away again. */
function checkPrototypes(): void {
  for (const [at, prototype] of PROTOTYPES.entries()) {
    const known = KEYS[at] as (string | symbol)[];
    const added = Reflect.ownKeys(prototype).filter((key) => !known.includes(key));
    for (const key of added) Reflect.deleteProperty(prototype, key);
    if (added.length > 0) throw new Error(`Every object has ${added.map(String).join(', ')} now.`);
  }
}

function kindOf(error: unknown): Failure['kind'] {
  return error instanceof Hang ? 'hang' : error instanceof InvalidOutput ? 'invalid' : 'crash';
}

function messageOf(error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return text.slice(0, 2_000);
}

/** Plays nothing but these rounds. */
export async function replayRounds(
  targets: readonly Target[],
  replays: readonly Replay[],
  on: PlayEvents,
): Promise<void> {
  for (const { target, seed, round } of replays) {
    await playTargets(targets, { seed, frames: 1, requests: 1, only: target, round }, on);
  }
}

/** What nobody has caught, of whichever target is played. */
const loose: unknown[] = [];
process.on('unhandledRejection', (error) => void loose.push(error));
process.on('uncaughtException', (error) => void loose.push(error));

type PlayEvents = { round(target: number, round: number): void; row(row: Row): void };

export async function playTargets(
  targets: readonly Target[],
  options: FuzzOptions,
  on: PlayEvents,
): Promise<void> {
  const { seed, only, round: onlyRound } = options;
  const chosen = targets.filter(({ name }) => only === undefined || name === only);
  const weights = chosen.reduce((sum, { weight = 1 }) => sum + weight, 0);
  for (const target of chosen) {
    const { name, weight = 1 } = target;
    const isRaw = weight === 0;
    const quota = isRaw ? options.requests : Math.ceil((options.frames * weight) / weights);
    const failures: Failure[] = [];
    const row: Row = {
      target: name,
      frames: 0,
      sound: 0,
      refused: 0,
      out: 0,
      seconds: 0,
      failures,
    };
    const startedAt = performance.now();
    let round = onlyRound ?? 0;
    const note = (error: unknown) => {
      failures.push({ target: name, round, kind: kindOf(error), message: messageOf(error) });
    };
    const isWorthALook = quota >= FRAMES_WORTH_A_LOOK;
    let before: number | undefined;
    for (; row.frames < quota && failures.length < MAX_FAILURES; round++) {
      on.round(targets.indexOf(target), round);
      const beganAt = performance.now();
      try {
        const played = await target.play(randomOf(seedOf(seed, name, round)));
        row.frames += played.malformed;
        row.sound += played.sound;
        row.refused += played.refused;
        row.out += played.out;
        checkPrototypes();
        const ms = performance.now() - beganAt;
        if (ms > HANG_MS) throw new Hang(`It came back only after ${Math.round(ms)} ms.`);
      } catch (error) {
        note(error);
      }
      for (const error of loose.splice(0)) note(error);
      // What the first round has loaded is there to stay.
      if (isWorthALook) before ??= usedBytes();
      if (onlyRound !== undefined) break;
    }
    on.round(targets.indexOf(target), round);
    try {
      await target.close?.();
      // A rejection that nobody handles is told of when the loop has come round.
      await new Promise((resolve) => setImmediate(resolve));
      const kept = before === undefined ? 0 : usedBytes() - before;
      if (kept > MAX_KEPT_BYTES) throw new Error(`It keeps ${Math.round(kept / 1e6)} MB.`);
    } catch (error) {
      note(error);
    }
    for (const error of loose.splice(0)) note(error);
    row.seconds = (performance.now() - startedAt) / 1_000;
    on.row(row);
  }
}
