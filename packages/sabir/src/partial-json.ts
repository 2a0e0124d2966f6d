/**
 * An incremental reader of JSON that has not all arrived: what a tool call's input looks like
 * while a model is still writing it.
 *
 * Owns a live tree and reads every character once, however the text is split, and only when
 * somebody looks. After any prefix `value` is what AI SDK's `parsePartialJson` makes of that
 * prefix: open strings, arrays and objects count as closed, a begun literal as whole, a number as
 * far as it is one, and a key only exists once its value has begun.
 *
 * AI SDK repairs a text by cutting it behind the last character it thinks well of and closing
 * what is open. So a wrong character does no harm until something after it counts: `commit` is
 * that moment, `bad` says that something wrong lies before it, `dead` that it came to count.
 *
 * In one case it does better: AI SDK takes an escaped quote in a key for the key's end and, if a
 * colon follows in that key, has no value until the text is whole. In another it only differs:
 * where a wrong `\u` escape ends, and so when it comes to count.
 */

/** What a value can begin with, and what can follow one in an array. */
const VALUE = '"{[tfn-0123456789';
const AFTER_ITEM = ',]';

/**
 * Plain characters and whole escapes. A wrong `\u` is one only after six more characters, because
 * AI SDK goes on looking for its digits; but what is read again with every look must stay short.
 * A piece ends after 500 of them: more would need a stack that grows with the text.
 */
const STRING_PIECE = /(?:[^"\\]+|\\(?:[^u]|u(?:[\da-fA-F]{4}|[\s\S]{6}))){1,500}/y;

const SPACE = 32;
const QUOTE = 34;
const BACKSLASH = 92;

const LITERALS: Record<string, unknown> = { t: true, f: false, n: null };

type Tree = Record<string | number, unknown>;

export type PartialJson = {
  push(text: string): void;
  /**
   * What the text so far means; undefined while it means nothing, and for good once it can no
   * longer be JSON or holds a key that AI SDK refuses (`__proto__`, `constructor.prototype`).
   * The tree is live: a later look writes into it. Copy what must stay as it was.
   */
  readonly value: unknown;
};

export function createPartialJson(unread = ''): PartialJson {
  let at = 0;
  // Reads a character; true if it cannot before more has arrived.
  let read: (char: string) => unknown = readNext;
  // The characters that may come next, outside of strings, numbers and literals.
  let expected = VALUE;
  let bad = false;
  let dead = false;

  // The container being read, those around it, and the place of the current value in it.
  const root: Tree = {};
  let container = root;
  const outer: Tree[] = [];
  let key: string | number = 'value';

  // The string, key or number being read.
  let text = '';
  let inKey = false;
  // What the literal being read still lacks.
  let word = '';
  // How much of the number counts, and whether it had the plus sign of `1e+21`, at
  // which AI SDK takes it for finished.
  let counted = '';
  let lost = false;
  // The whole of a number of which only the beginning counts so far.
  let owed: unknown;
  let owedKey: string | number = key;

  /** Undefined where the text is not JSON. */
  function parse(json: string): unknown {
    try {
      return JSON.parse(json);
    } catch {
      bad = true;
    }
  }

  const isInArray = () => Array.isArray(container);

  function place(value: unknown): void {
    if (
      value === undefined ||
      key === '__proto__' ||
      (key === 'prototype' && (outer.at(-1) as Tree).constructor === (container as unknown))
    ) {
      dead = true;
    } else container[key] = value;
  }

  function commit(): void {
    dead ||= bad;
    if (owed !== undefined) container[owedKey] = owed;
    owed = undefined;
  }

  function endValue(): void {
    read = readNext;
    expected = isInArray() ? AFTER_ITEM : container === root ? '' : ',}';
  }

  function placeNumber(): void {
    if (counted !== '') place(parse(counted));
  }

  function readNumber(char: string): void {
    if (char >= '0' && char <= '9') {
      text += char;
      if (!lost || isInArray()) {
        commit();
        counted = text;
      }
    } else if ('+-.eE'.indexOf(char) >= 0) {
      text += char;
      dead = lost && isInArray();
      lost ||= char === '+';
    } else {
      placeNumber();
      if (counted !== text) {
        owed = parse(text);
        owedKey = key;
      }
      endValue();
      readNext(char, !lost);
    }
  }

  function readLiteral(char: string): void {
    if (char === word[0]) word = word.slice(1);
    else {
      dead = word !== '';
      endValue();
      readNext(char, true);
    }
  }

  /** Reads more than a character: a piece of a string. */
  function readString(): unknown {
    let end = at;
    let code = unread.charCodeAt(end);
    while (code >= SPACE && code !== QUOTE && code !== BACKSLASH) code = unread.charCodeAt(++end);
    let piece: unknown = unread.slice(at, end);
    if (code !== QUOTE && end < unread.length) {
      // There is an escape in it, or what may not be in a string.
      STRING_PIECE.lastIndex = at;
      if (!STRING_PIECE.test(unread)) return true;
      end = STRING_PIECE.lastIndex;
      piece = parse(`"${unread.slice(at, end)}"`);
    }
    text += piece;
    at = end - 1;
    if (!inKey) commit();
    if (code === QUOTE) {
      at = end;
      if (inKey) {
        key = text;
        read = readNext;
        expected = ':';
      } else {
        place(text);
        endValue();
      }
    }
    return undefined;
  }

  function readNext(char: string, endsToken?: boolean): void {
    if (expected.indexOf(char) < 0) {
      bad ||= ' \n\t\r'.indexOf(char) < 0;
      // Here AI SDK counts whatever comes, but for what ends a number or a literal.
      if (expected === AFTER_ITEM && !endsToken) commit();
    } else if (char === ':') expected = VALUE;
    else if (char === ',') {
      // Of an object it is the next key, which is still to come.
      key = container.length as number;
      expected = isInArray() ? VALUE : '"';
    } else if (char === '"') {
      inKey = expected.length < VALUE.length;
      text = '';
      read = readString;
      if (!inKey) begin('');
    } else if (char === '[') open([], `${VALUE}]`);
    else if (char === '{') open({}, '"}');
    else if (']}'.indexOf(char) >= 0) {
      commit();
      container = outer.pop() as Tree;
      endValue();
    } else if (char in LITERALS) {
      begin(LITERALS[char]);
      word = `${LITERALS[char]}`.slice(1);
      read = readLiteral;
    } else {
      text = counted = '';
      lost = false;
      read = readNumber;
      readNumber(char);
    }
  }

  function begin(value: unknown): void {
    commit();
    place(value);
  }

  function open(inner: object, next: string): void {
    begin(inner);
    outer.push(container);
    container = inner as Tree;
    key = 0;
    expected = next;
  }

  return {
    push(added) {
      unread += added;
    },
    get value() {
      for (at = 0; at < unread.length && !dead && !read(unread[at] as string); ) at++;
      unread = unread.slice(at);
      if (read === readNumber) placeNumber();
      else if (read === readString && !inKey) place(text);
      if (dead) return undefined;
      if (container !== root || bad) return root.value;
      // AI SDK tries the whole text first; that it is none yet is nothing bad.
      const whole = read === readNumber ? parse(text) : owed;
      bad = false;
      return whole ?? root.value;
    },
  };
}
