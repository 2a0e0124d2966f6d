import type { Emit } from './events.ts';

type Kind = 'text' | 'reasoning';
type Block = { held: string; hasEnded: boolean };

/**
 * Texts and reasoning of a turn. V2 has deltas and no parts: of two texts that are open at once the
 * later one waits until the earlier one has ended, so that their words do not mix. Nothing else waits
 * for a text, because there are models that end it only with the step.
 */
export function createHeldTexts(emit: Emit, onWords: (kind: Kind) => void) {
  const open = { text: new Map<string, Block>(), reasoning: new Map<string, Block>() };

  function write(kind: Kind, delta: string): void {
    if (delta === '') return;
    onWords(kind);
    emit(`message.part.${kind}-delta`, { delta });
  }

  /** Writes the first open text, and behind it each next one while the one before has ended. */
  function release(kind: Kind): void {
    for (const [id, block] of open[kind]) {
      write(kind, block.held);
      block.held = '';
      if (!block.hasEnded) return;
      open[kind].delete(id);
    }
  }

  return {
    push(kind: Kind, verb: string, id: string, delta: string): void {
      const blocks = open[kind];
      const block = blocks.get(id) ?? { held: '', hasEnded: false };
      if (verb !== 'end') blocks.set(id, block);
      block.held += delta;
      if (verb === 'end') block.hasEnded = true;
      const [first] = blocks.keys();
      if (first === id) release(kind);
    },
    /** A step or the turn is over: no text goes on. */
    endAll(): void {
      for (const kind of ['text', 'reasoning'] as const) {
        for (const block of open[kind].values()) block.hasEnded = true;
        release(kind);
      }
    },
  };
}
