import { BAD_REQUEST, SabirError } from '../errors.ts';

/** Far more than any message nests, and far less than a stack bears. */
const MAX_DEPTH = 200;

/** `JSON.parse` takes any depth, and hardly anything after it does. */
export function checkDepth(value: unknown): void {
  let level = [value].filter(isObject);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) {
      throw new SabirError(BAD_REQUEST, `The body nests deeper than ${MAX_DEPTH} levels.`);
    }
    const next: object[] = [];
    for (const outer of level) {
      for (const inner of Object.values(outer)) if (isObject(inner)) next.push(inner);
    }
    level = next;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
