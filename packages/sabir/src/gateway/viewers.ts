import { startTimeout, type Timer } from '../core/timers.ts';

type Presence = {
  viewers: number;
  /** Somebody left who can only say "stop" by leaving, and nobody has come instead. */
  wasLeft: boolean;
  grace: Timer | undefined;
};

export type ViewerKind = {
  /** Promised to stop explicitly: its leaving is only ever a detach. */
  isDetaching: boolean;
  /** May stop turns at all: the leaving of somebody who only watches never does. */
  mayStop: boolean;
};

export type Viewers = ReturnType<typeof createViewers>;

/**
 * Who watches which turn. A stock client says "stop" by disconnecting, and a reload disconnects
 * too: so a turn that its last viewer left goes on for a while, and is stopped if nobody came back.
 */
export function createViewers(graceMs: number, stop: (turnId: string) => void) {
  const turns = new Map<string, Presence>();

  function drop(turnId: string): void {
    turns.get(turnId)?.grace?.clear();
    turns.delete(turnId);
  }

  return {
    /**
     * Gives the way out, to be taken once; whoever was shown out did not leave by their own will, and
     * whoever was shown out to answer comes back.
     */
    enter(
      turnId: string,
      { isDetaching, mayStop }: ViewerKind,
    ): (wasShownOut: boolean, isToAnswer?: boolean) => void {
      const presence = turns.get(turnId) ?? { viewers: 0, wasLeft: false, grace: undefined };
      turns.set(turnId, presence);
      presence.viewers++;
      presence.grace?.clear();
      if (mayStop) presence.wasLeft = false;
      return (wasShownOut, isToAnswer = false) => {
        presence.viewers--;
        if (mayStop && !wasShownOut) presence.wasLeft = !isDetaching;
        if (mayStop && isToAnswer) presence.wasLeft = false;
        // A turn that has ended is gone from here.
        if (presence.viewers > 0 || turns.get(turnId) !== presence) return;
        if (!presence.wasLeft) {
          drop(turnId);
          return;
        }
        const end = () => {
          drop(turnId);
          stop(turnId);
        };
        if (graceMs > 0) presence.grace = startTimeout(graceMs, end);
        else end();
      };
    },
    /** The turn has ended: nothing is left to stop. */
    forget: drop,
    close(): void {
      for (const turnId of turns.keys()) drop(turnId);
    },
  };
}
