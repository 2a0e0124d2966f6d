import { describe, expect, it } from 'vitest';
import { createPieces, type ReplayPiece } from './pieces.ts';

describe('the pieces of replays', () => {
  const small: ReplayPiece = { bytes: new Uint8Array(10), encoder: {} as never };

  it('are kept for a while after their last viewer, each with the weight of its encoder', () => {
    const pieces = createPieces(100_000);
    let made = 0;
    const hold = (key: string) => {
      pieces.hold(key, () => {
        made++;
        return small;
      });
      pieces.release(key);
    };
    hold('first');
    hold('first');
    expect(made).toBe(1);
    for (let i = 0; i < 20; i++) hold(`other ${i}`);
    hold('first');
    expect(made).toBe(22);
  });
});
