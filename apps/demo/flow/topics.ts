import type { Topic } from './script.ts';
import { anything } from './topics/anything.ts';
import { clock } from './topics/clock.ts';
import { failure } from './topics/failure.ts';
import { harbour } from './topics/harbour.ts';
import { sabir } from './topics/sabir.ts';
import { wires } from './topics/wires.ts';

/** In the order in which they are asked; `anything` takes what nobody else wants. */
const TOPICS: readonly Topic[] = [failure, clock, harbour, sabir, wires, anything];

export function findTopic(message: string): Topic {
  return TOPICS.find((topic) => topic.matches(message)) ?? anything;
}

export const SUGGESTIONS = [sabir, harbour, wires, failure].flatMap(
  ({ suggestion }) => suggestion ?? [],
);
