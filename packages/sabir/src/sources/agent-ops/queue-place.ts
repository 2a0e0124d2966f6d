import type { AgentOpsDataTypes } from './events.ts';

type QueueData = AgentOpsDataTypes['queue'];

/**
 * Where our prompt waits, told as it changes, and that it waits no more: also if only somebody else
 * may have told where.
 */
export function createQueuePlace(show: (data: QueueData) => void, mayBeShown = false) {
  let shown: number | undefined = mayBeShown ? 0 : undefined;
  return {
    tell(position: number | undefined): void {
      if (position === undefined || position === shown) return;
      shown = position;
      show({ position, status: 'waiting' });
    },
    leave(status: 'begun' | 'withdrawn'): void {
      if (shown !== undefined) show({ position: 0, status });
      shown = undefined;
    },
  };
}
