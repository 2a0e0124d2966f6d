import type { Chunk } from '../src/core/chunks.ts';
import type { SseFrame } from '../src/core/sse.ts';
import { openSse } from './gateway-client.ts';

type Control = { event: string } & Record<string, unknown>;

/** Reads a follow stream: what it says beside turns, and each turn's own frames. */
export function openFollow(response: Response) {
  const sse = openSse(response);
  const isControl = ({ event }: SseFrame) => event?.startsWith('follow.') ?? false;
  const controls = (name?: string): Control[] =>
    sse.frames
      .filter((frame) => (name ? frame.event === `follow.${name}` : isControl(frame)))
      .map(({ event = '', data }) => ({ ...JSON.parse(data), event }));
  /** The frames of one turn, by their place between its `follow.turn` and `follow.end`. */
  const framesOf = (turnId: string): SseFrame[] => {
    let current: string | undefined;
    return sse.frames.filter((frame) => {
      if (frame.event === 'follow.turn') current = JSON.parse(frame.data).turnId;
      if (frame.event === 'follow.end') current = undefined;
      return current === turnId && !isControl(frame);
    });
  };
  const chunksOf = (turnId: string) => framesOf(turnId).map(({ data }): Chunk => JSON.parse(data));
  const state = () => controls('state').at(-1);
  return {
    ...sse,
    controls,
    framesOf,
    chunksOf,
    textOf: (turnId: string) =>
      chunksOf(turnId).reduce((all, c) => all + (c.type === 'text-delta' ? c.delta : ''), ''),
    /** The last state. */
    state,
    /** How many of them the last state names. */
    count: (what: 'queue' | 'people') => (state()?.[what] as unknown[] | undefined)?.length,
    untilTurn: (index = 0) => sse.until(() => controls('turn')[index]),
    untilEnd: (index = 0) => sse.until(() => controls('end')[index]),
  };
}
