/**
 * A long answer in the pieces that models say: English prose, in tokens of four letters and a bit.
 * Not a recording: its words are those of this project's licence.
 */
import { readFileSync } from 'node:fs';

export const ANSWER_DELTAS = 3_504;

/** A word with the space before it; a long one in several pieces. */
const TOKENS = /\s?[A-Za-z]{1,7}|\s?[0-9]{1,3}|\s?[^\sA-Za-z0-9]|\s/g;

export function answerDeltas(): string[] {
  const text = readFileSync(new URL('../../LICENSE', import.meta.url), 'utf8');
  const tokens = text.replace(/[ \t]+/g, ' ').match(TOKENS) ?? [];
  return Array.from({ length: ANSWER_DELTAS }, (_, i) => tokens[i % tokens.length] as string);
}
