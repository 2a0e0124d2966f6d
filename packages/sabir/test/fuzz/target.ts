/** What is fuzzed, and what must never come of it. */
import { isDeepStrictEqual } from 'node:util';
import type { AiSdkMajor, Chunk } from '../../src/core/chunks.ts';
import { createDowngrade } from '../../src/core/downgrade.ts';
import { SabirError } from '../../src/core/errors.ts';
import { foldChunks } from '../../src/core/fold.ts';
import { toJsonSafe } from '../../src/core/json.ts';
import { type ViolationCode, verifyChunks } from '../../src/core/verify.ts';
import type { Random } from './random.ts';

export type Played = {
  /** How many malformed frames, and how many sound ones between them. */
  malformed: number;
  sound: number;
  /** How many of them were refused, or left out and counted. */
  refused: number;
  /** How many chunks, events or messages came out. */
  out: number;
};

export type Target = {
  name: string;
  /** Its part of all the frames; 1 unless said otherwise. */
  weight?: number;
  /** One round: throws, or hangs, if something is wrong. */
  play(random: Random): Played | Promise<Played>;
  /** Lets go of what it holds. */
  close?(): Promise<void>;
};

/** A chunk came out that would kill a client, or that says something else than it should. */
export class InvalidOutput extends Error {}

const CLIENTS = ['portable', 5, 6, 7] as const;

export type CheckOptions = {
  clients?: readonly (AiSdkMajor | 'portable')[];
  allowed?: readonly ViolationCode[];
  /** Nothing stands between these chunks and the client. */
  isSentAsItIs?: boolean;
};

/** The chunks of a turn that has ended, as one kind of client gets them: it takes them all. */
export function checkTurn(chunks: Chunk[], random: Random, options: CheckOptions = {}): void {
  const client = random.pick(options.clients ?? CLIENTS);
  const sent = options.isSentAsItIs
    ? chunks.map(asWritten)
    : chunks.flatMap(createDowngrade(client));
  const target = client === 'portable' ? {} : { aiSdk: client };
  // What waits for an approval stays open, and these clients are not told what it waits for.
  const canWait = (client === 5 || client === 'portable') && chunks.some(isApprovalRequest);
  const violations = verifyChunks(sent, target).filter(
    ({ code }) => !options.allowed?.includes(code) && !(canWait && code === 'tool-left-open'),
  );
  if (violations.length > 0) {
    throw new InvalidOutput(`for ${client}: ${JSON.stringify(violations.slice(0, 3))}`);
  }
  foldChunks(chunks);
  foldChunks(sent);
}

/**
 * What a client in the same process is given was never written as JSON: keys that a parser refuses,
 * and depth that a writer cannot bear, do it no harm.
 */
function asWritten(chunk: Chunk): Chunk {
  const fields = Object.entries(chunk).filter(([key, value]) => {
    return value !== undefined && key !== '__proto__' && key !== 'constructor';
  });
  const written = fields.map(([key, value]) => {
    const safe = toJsonSafe(value);
    // What is too deep is a word now, and was none.
    const isSame = typeof safe === typeof value;
    return [key, isSame ? safe : Array.isArray(value) ? [] : {}];
  });
  return Object.fromEntries(written) as Chunk;
}

const isApprovalRequest = ({ type }: Chunk) => type === 'tool-approval-request';

export function checkSame(actual: unknown, expected: unknown, what: string): void {
  if (!isDeepStrictEqual(actual, expected)) throw new InvalidOutput(what);
}

/** 1 if it was refused as it may be, 0 if not; anything else that is thrown is a crash. */
export async function countRefusal(run: () => unknown): Promise<0 | 1> {
  try {
    await run();
    return 0;
  } catch (error) {
    if (error instanceof SabirError && error.status < 500) return 1;
    throw error;
  }
}

/** Rejects if it takes far longer than it can: whoever waits for it would wait for ever. */
export async function withinTime<T>(promise: Promise<T>, what: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Hang(`${what} takes for ever`)), HANG_MS);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** More than anything in one round takes on the busiest machine. */
export const HANG_MS = 20_000;
export class Hang extends Error {}
