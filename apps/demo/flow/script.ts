import type { AgentName, PersonRequest } from './model.ts';

/** One thing a scripted model does. */
export type Beat =
  | { think: string }
  | { say: string }
  | { call: string; input: unknown }
  /** Words made of the time at which each was written: how the demo's latency is measured. */
  | { stamp: 'thinking' | 'text'; words: number }
  /** The model breaks off here; the text is for people. */
  | { fail: string };

/** The answers of the tools so far, in order, as the model would read them. */
type Turn = (toolAnswers: string[]) => Beat[];

/** For each agent its turns: a turn that calls tools is followed by one that reads their answers. */
type Script = Record<AgentName, Turn[]>;

export type Topic = {
  /** What the page offers to ask; topics without one are found by typing. */
  suggestion?: { title: string; message: string };
  matches(message: string): boolean;
  /** `attempt` counts from 1 and grows when the same message is tried again. */
  write(person: PersonRequest, attempt: number): Script;
};

/** How many notes a search answer holds, for scripts that speak about their own research. */
export function countHits(toolAnswers: string[]): number {
  let hits = 0;
  for (const answer of toolAnswers) {
    const parsed: { hits?: unknown[] } = JSON.parse(answer);
    hits += parsed.hits?.length ?? 0;
  }
  return hits;
}

export function plural(count: number, noun: string): string {
  const words = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];
  return `${words[count] ?? count} ${noun}${count === 1 ? '' : 's'}`;
}
