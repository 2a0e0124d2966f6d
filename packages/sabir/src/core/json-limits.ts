/**
 * Limits on JSON text that hold before `JSON.parse`. Parsed values are far larger than their text
 * (`[{},{},…]` about 20 times), so a limit on bytes alone does not bound memory.
 */
export type JsonLimits = {
  /**
   * How deep arrays and objects may nest.
   *
   * @default 200
   */
  depth?: number;
  /**
   * How many arrays, objects and fields of objects there may be.
   *
   * @default 100_000
   */
  nodes?: number;
  /**
   * How many characters there may be outside of `data:` URLs, which parse into one string each.
   *
   * @default Infinity
   */
  length?: number;
};

export type JsonProblem = 'too-deep' | 'too-many-nodes' | 'too-long';

export const JSON_DEPTH = 200;
export const JSON_NODES = 100_000;
/** About what an array, an object or a field takes in memory once it is parsed. */
export const NODE_BYTES = 80;

const FILE = 'data:';
const QUOTE = '"'.charCodeAt(0);
const BACKSLASH = '\\'.charCodeAt(0);

/**
 * A push machine over JSON text in pieces of any size. Allocates nothing, stops at the first limit
 * that is exceeded, and leaves the question whether the text is JSON to `JSON.parse`.
 */
export function createJsonMeter(limits: JsonLimits = {}) {
  const { depth: maxDepth = JSON_DEPTH, nodes: maxNodes = JSON_NODES } = limits;
  const { length: maxLength = Infinity } = limits;
  let depth = 0;
  let nodes = 0;
  let length = 0;
  let isString = false;
  /** How much of `data:` the string has begun with; undefined if it began with something else. */
  let matched: number | undefined;
  /** The piece before ended with a backslash that escapes what follows. */
  let isEscaping = false;
  let problem: JsonProblem | undefined;

  /** Reads up to the next string. Returns where it begins. */
  function readStructure(text: string, from: number): number {
    const end = Math.min(text.length, from + maxLength - length + 1);
    for (let at = from; at < end; at++) {
      switch (text.charCodeAt(at)) {
        case QUOTE:
          isString = true;
          matched = 0;
          length += at + 1 - from;
          return at + 1;
        case 0x5b: // [
        case 0x7b: // {
          if (++depth > maxDepth) problem = 'too-deep';
          if (++nodes > maxNodes) problem ??= 'too-many-nodes';
          break;
        case 0x5d: // ]
        case 0x7d: // }
          depth--;
          break;
        case 0x3a: // :
          if (++nodes > maxNodes) problem = 'too-many-nodes';
      }
      if (problem) return at;
    }
    length += end - from;
    return end;
  }

  function matchPrefix(text: string, from: number): number {
    let at = from;
    while (at < text.length && matched !== undefined && matched < FILE.length) {
      if (text[at] !== FILE[matched]) {
        matched = undefined;
      } else {
        matched++;
        at++;
      }
    }
    length += at - from;
    return at;
  }

  /** Reads up to the end of a string. Returns what follows it. */
  function readString(text: string, from: number): number {
    let at = from;
    let end = text.length;
    for (;;) {
      const quote = text.indexOf('"', at);
      const isEscaped = endsWithEscape(text, from, quote < 0 ? end : quote);
      if (quote < 0) {
        isEscaping = isEscaped;
        break;
      }
      at = quote + 1;
      if (isEscaped) continue;
      isString = false;
      isEscaping = false;
      end = at;
      break;
    }
    if (matched !== FILE.length) length += end - from;
    return end;
  }

  /** Whether an odd number of backslashes stands before `end`. */
  function endsWithEscape(text: string, start: number, end: number): boolean {
    let at = end;
    while (at > start && text.charCodeAt(at - 1) === BACKSLASH) at--;
    const isOdd = (end - at) % 2 === 1;
    return at === start && isEscaping ? !isOdd : isOdd;
  }

  return {
    /** The arrays, objects and fields so far. */
    get nodes() {
      return nodes;
    },
    /** Takes the next piece. Gives the first limit that was exceeded, now or before. */
    push(text: string): JsonProblem | undefined {
      let at = 0;
      while (at < text.length && !problem) {
        if (!isString) at = readStructure(text, at);
        else if (matched !== undefined && matched < FILE.length) at = matchPrefix(text, at);
        else at = readString(text, at);
        if (length > maxLength) problem ??= 'too-long';
      }
      return problem;
    },
  };
}
