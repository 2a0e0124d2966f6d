/** Far more than anything nests that people or agents say, and far less than a stack bears. */
const MAX_DEPTH = 500;

/**
 * What a frame says, as an object; throws where it is no JSON. `JSON.parse` takes any depth and
 * hardly anything after it does, so what nests too deep is refused here.
 */
export function parseFrame(frame: string): Record<string, unknown> {
  const value: Record<string, unknown> = Object(JSON.parse(frame));
  // A level is two brackets: nearly all frames are too short to be too deep.
  if (frame.length > 2 * MAX_DEPTH && isTooDeep(value)) {
    throw new SyntaxError('The frame nests too deep.');
  }
  return value;
}

/** Whether it is more than can be dealt with, though it could be read. */
export function isTooDeep(value: object): boolean {
  let level: object[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true;
    const next: object[] = [];
    for (const outer of level) {
      for (const inner of Object.values(outer)) {
        if (typeof inner === 'object' && inner !== null) next.push(inner);
      }
    }
    level = next;
  }
  return false;
}
