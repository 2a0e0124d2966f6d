/**
 * The rhythm of a scripted model. Real models do not tick like a metronome: tokens come in
 * bursts, slow down at the end of a sentence and sometimes hang for a moment, and a chat page
 * has to look calm through all of it.
 */
export type Pace = {
  /** Waits until the next piece is due. */
  beforePiece(piece: string, signal: AbortSignal): Promise<void>;
  /** Waits for something that takes `ms` at normal speed, such as a tool. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
};

const MEAN_PIECE_MS = 30;
/** Timers below this are clamped by browsers, so shorter waits are saved up instead. */
const SHORTEST_TIMER_MS = 4;

export function createPace(speed = 1): Pace {
  const random = createRandom(1830);
  let owedMs = 0;

  const wait = async (ms: number, signal: AbortSignal) => {
    signal.throwIfAborted();
    owedMs += ms / speed;
    if (owedMs < SHORTEST_TIMER_MS) return;
    const sleepMs = owedMs;
    owedMs = 0;
    await sleep(sleepMs, signal);
  };

  return {
    wait,
    beforePiece(piece, signal) {
      let ms = MEAN_PIECE_MS * (0.35 + 1.1 * random());
      if (/[.:!?]\s*$/.test(piece)) ms += 60 + 80 * random();
      if (random() < 0.02) ms += 180;
      return wait(ms, signal);
    },
  };
}

/** Splits a text the way a tokenizer roughly would: words with the space before them, long ones in two. */
export function toPieces(text: string): string[] {
  const pieces: string[] = [];
  for (const [word] of text.matchAll(/\s*\S+|\s+$/g)) {
    if (word.length <= 9) {
      pieces.push(word);
      continue;
    }
    const middle = Math.ceil(word.length / 2);
    pieces.push(word.slice(0, middle), word.slice(middle));
  }
  return pieces;
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal.addEventListener('abort', stop, { once: true });
  });
}

/** Seeded, so that a recording of the demo can be made twice. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
