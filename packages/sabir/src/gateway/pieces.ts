import type { Bytes, WireEncoder } from '../wires/wire-encoder.ts';

/** A part of a turn's replay, and the encoder as it is behind that. */
export type ReplayPiece = { readonly bytes: Bytes; readonly encoder: WireEncoder };

type Kept = ReplayPiece & { holders: number };

export type Pieces = ReturnType<typeof createPieces>;

/** Bytes of pieces without a holder, kept for viewers that come soon after one another. */
const KEPT_BYTES = 4_000_000;
/** About what the encoder behind a piece holds: more than the bytes of a short turn. */
const ENCODER_BYTES = 8_000;

/**
 * The parts of replays that viewers are being sent. Viewers that come back at once, after a network
 * or a server was away, are sent the same bytes: each part is encoded once for all of them, and one
 * that a hundred slow viewers have not taken yet is in memory once.
 */
export function createPieces(keptBytes = KEPT_BYTES) {
  const held = new Map<string, Kept>();
  /** Pieces without a holder, in the order they were released. */
  const idle = new Map<string, Kept>();
  let idleBytes = 0;

  function takeIdle(key: string): Kept | undefined {
    const piece = idle.get(key);
    if (!piece) return undefined;
    idle.delete(key);
    idleBytes -= sizeOf(piece);
    return piece;
  }

  return {
    /** The piece of that name, made if there is none. To be released when its viewer has taken it. */
    hold(key: string, make: () => ReplayPiece): ReplayPiece {
      const piece = held.get(key) ?? takeIdle(key) ?? { ...make(), holders: 0 };
      piece.holders++;
      held.set(key, piece);
      return piece;
    },
    release(key: string): void {
      const piece = held.get(key);
      if (!piece || --piece.holders > 0) return;
      held.delete(key);
      idle.set(key, piece);
      idleBytes += sizeOf(piece);
      for (const oldest of idle.keys()) {
        if (idleBytes <= keptBytes) return;
        takeIdle(oldest);
      }
    },
  };
}

function sizeOf({ bytes }: ReplayPiece): number {
  return bytes.length + ENCODER_BYTES;
}
