import type { Chunk } from '../core/chunks.ts';
import type { ErrorKind } from '../core/errors.ts';
import type { LoggedChunk } from '../turns/log.ts';

export type Bytes = Uint8Array<ArrayBuffer>;

/**
 * A turn's chunks → the bytes of one wire. It knows nothing of a single viewer: all viewers of a turn
 * that are at the same cursor, on the same wire, can share one encoder and the bytes it makes.
 *
 * An encoder
 * - MUST be given every entry of its turn once and in order, by `encode` or by `skip`, unless it
 *   `isStateless`;
 * - MUST give the same bytes for the same entries as any other encoder of its turn with the same `key`;
 * - MUST put a cursor only behind the last frame of a chunk: a viewer never resumes inside of one.
 */
export interface WireEncoder {
  readonly key: string;
  /** The bytes follow from the entries alone, so that it may begin anywhere in a turn. */
  readonly isStateless: boolean;
  /** For entries that the viewer has already. */
  skip(entries: readonly LoggedChunk[]): void;
  encode(entries: readonly LoggedChunk[]): Bytes;
  /** The turn has ended, and all of it was encoded. Changes nothing. */
  end(): Bytes;
  /** Ends a stream before its turn ends, with an error for the client. Changes nothing. */
  farewell(why: ErrorKind, viewed: Viewed): Bytes;
  /** Another one in the same state: from here on each goes its own way. */
  fork(): WireEncoder;
}

/** What one viewer has of a turn. */
type Viewed = {
  /** The cursor that it began with. */
  after: number;
  /** The chunks that open or close a part, as far as it was sent them. */
  structure: readonly Chunk[];
};
