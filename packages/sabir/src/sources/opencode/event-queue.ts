import type { DriverEvent } from '../../turns/driver.ts';

/**
 * What a turn has to say and nobody has taken yet. Words that arrive in one tick are one event: the
 * server tells nearly every token by itself.
 */
export function createEventQueue(mergeDeltas: boolean) {
  let waiting: DriverEvent[] = [];
  let end: { error?: unknown } | undefined;
  let wake: (() => void) | undefined;

  return {
    push(event: DriverEvent): void {
      if (end) return;
      const last = waiting.at(-1);
      if (mergeDeltas && isWords(event) && last?.type === event.type) {
        waiting[waiting.length - 1] = { type: event.type, delta: `${last.delta}${event.delta}` };
      } else {
        waiting.push(event);
      }
      wake?.();
    },
    /** What was pushed before is still given out. */
    end(): void {
      end ??= {};
      wake?.();
    },
    fail(error: unknown): void {
      end ??= { error };
      wake?.();
    },
    async *[Symbol.asyncIterator](): AsyncGenerator<DriverEvent, void> {
      for (;;) {
        const taken = waiting;
        waiting = [];
        yield* taken;
        if (waiting.length > 0) continue;
        if (end) {
          if ('error' in end) throw end.error;
          return;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

type Words = Extract<DriverEvent, { type: 'text' | 'reasoning' }>;

function isWords(event: DriverEvent): event is Words {
  return event.type === 'text' || event.type === 'reasoning';
}
