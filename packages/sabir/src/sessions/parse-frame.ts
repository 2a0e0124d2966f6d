import { createJsonMeter } from '../core/json-limits.ts';

/** Far more than anything nests that people or agents say, and far less than a stack bears. */
const MAX_DEPTH = 500;

/**
 * What a frame says, as an object; throws where it is no JSON. `JSON.parse` takes any depth and
 * hardly anything after it does, so what nests too deep is refused here.
 */
export function parseFrame(frame: string): Record<string, unknown> {
  // A level is two brackets: nearly all frames are too short to be too deep.
  const canBeDeep = frame.length > 2 * MAX_DEPTH;
  if (canBeDeep && createJsonMeter({ depth: MAX_DEPTH, nodes: Infinity }).push(frame)) {
    throw new SyntaxError('The frame nests too deep.');
  }
  return Object(JSON.parse(frame));
}
