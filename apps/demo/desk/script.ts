import type { GuideEntry } from './guide.ts';

/** A stretch of an answer, and what it is taken from. */
export type Passage = { text: string; source?: GuideEntry };

/** One thing a scripted agent does. */
export type Beat =
  | { think: string }
  | { say: string | Passage[] }
  | { call: string; input: unknown }
  /** Words made of the time at which each was written: how the demo's latency is measured. */
  | { stamp: 'think' | 'say'; words: number }
  /** The model breaks off here; the text is for people. */
  | { fail: string };

/** What a tool gave in this turn, as the model reads it. */
type ToolAnswer = { name: string; text: string };

/** What an agent goes by when it is its turn to speak. */
export type Situation = {
  message: string;
  /** How often the person has asked before. */
  earlier: number;
  answers: readonly ToolAnswer[];
  /** Counts from 1 and grows when the same message is tried again. */
  attempt: number;
};

export type Speak = (situation: Situation) => Beat[];

/** The JSON of a tool's answer; undefined where it gave none, or a text that says why not. */
export function read<T>({ answers }: Situation, tool: string): T | undefined {
  const answer = answers.findLast(({ name }) => name === tool);
  if (!answer) return undefined;
  try {
    const value: unknown = JSON.parse(answer.text);
    return typeof value === 'object' && value !== null ? (value as T) : undefined;
  } catch {
    return undefined;
  }
}

export function hasCalled({ answers }: Situation, tool: string): boolean {
  return answers.some(({ name }) => name === tool);
}

/** The person's own words, on one line and without anything that Markdown would take for its own. */
export function quote(message: string): string {
  const line = message.replace(/[\s`*_#|<>[\]]+/g, ' ').trim();
  return `“${line.length > 80 ? `${line.slice(0, 79)}…` : line}”`;
}
