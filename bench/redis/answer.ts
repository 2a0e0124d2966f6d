/**
 * A long answer in pieces. Not a recording, there is none of that length: its words are those of this
 * project's licence.
 */
import { readFileSync } from 'node:fs';
import { sized } from '../report.ts';

export const ANSWER_DELTAS = sized(3_504, 200);

/** How it is cut. */
export type Cut = keyof typeof CUTS;

/** `tokens`: a word with the space before it, a long one in several pieces, as models say it. */
const TOKENS = /\s?[A-Za-z]{1,7}|\s?[0-9]{1,3}|\s?[^\sA-Za-z0-9]|\s/g;
/** `letters`: 1.7 characters at a time, as OpenCode was seen to tell it. */
const LETTERS = [2, 2, 1, 2, 2, 1, 2, 2, 1, 2];

const CUTS = {
  tokens: (text: string) => text.match(TOKENS) ?? [],
  letters(text: string) {
    const pieces: string[] = [];
    for (let at = 0; at < text.length; ) {
      const length = LETTERS[pieces.length % LETTERS.length] as number;
      pieces.push(text.slice(at, at + length));
      at += length;
    }
    return pieces;
  },
};

export function answerDeltas(cut: string): string[] {
  const text = readFileSync(new URL('../../LICENSE', import.meta.url), 'utf8');
  const pieces = CUTS[cut as Cut](text.replace(/[ \t]+/g, ' '));
  return Array.from({ length: ANSWER_DELTAS }, (_, i) => pieces[i % pieces.length] as string);
}
