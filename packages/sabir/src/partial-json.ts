/**
 * An incremental reader of JSON that has not all arrived: what a tool call's input looks like
 * while a model is still writing it.
 *
 * Owns a live tree and reads every character once, however the text is split. After any prefix
 * `value` is what AI SDK's `parsePartialJson` makes of that prefix: open strings, arrays and
 * objects count as closed, a begun literal as whole, a number as far as it is one, and a key
 * only exists once its value has begun.
 *
 * AI SDK repairs a text by cutting it behind the last character it thinks well of and closing
 * what is open. So a wrong character does no harm until something after it counts: `commit` is
 * that moment, `bad` says that something wrong lies before it, `dead` that it came to count.
 *
 * In one case it does better: AI SDK takes an escaped quote in a key for the key's end and, if a
 * colon follows in that key, has no value until the text is whole.
 */

const ROOT = 0;
const DONE = 1;
const STRING = 2;
const ESCAPE = 3;
const UNICODE = 4;
const LITERAL = 5;
const NUMBER = 6;
const OBJECT_START = 7;
const OBJECT_AFTER_COMMA = 8;
const OBJECT_AFTER_KEY = 9;
const OBJECT_BEFORE_VALUE = 10;
const OBJECT_AFTER_VALUE = 11;
const ARRAY_START = 12;
const ARRAY_AFTER_COMMA = 13;
const ARRAY_AFTER_VALUE = 14;

const STRICT_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const NUMBER_SIGNS = '+-.eE';
const HEX = /[\da-fA-F]/;
const WORDS: Record<string, [word: string, value: unknown]> = {
  t: ['true', true],
  f: ['false', false],
  n: ['null', null],
};
const ESCAPES: Record<string, string> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

const QUOTE = 34;
const BACKSLASH = 92;
const FIRST_PRINTABLE = 32;

const isBlank = (char: string) => char === ' ' || char === '\n' || char === '\t' || char === '\r';
const isDigit = (char: string) => char >= '0' && char <= '9';

export type PartialJson = {
  push(text: string): void;
  /**
   * What the text so far means; undefined while it means nothing, and for good once it can no
   * longer be JSON or holds a key that AI SDK refuses (`__proto__`, `constructor.prototype`).
   * The tree is live: a later push writes into it. Copy what must stay as it was.
   */
  readonly value: unknown;
};

export function createPartialJson(): PartialJson {
  let state = ROOT;
  let bad = false;
  let dead = false;
  let root: unknown;

  // The open containers, the key each has in the one around it, and that of the current value.
  const stack: object[] = [];
  const keys: string[] = [];
  let key = '';

  // The string, key or number being read.
  let text = '';
  let inKey = false;
  let hex = '';
  let word = '';
  let wordAt = 0;
  // How much of the number counts, whether it is in the tree, and whether it had the plus sign
  // of `1e+21`, at which AI SDK takes it for finished.
  let counted = 0;
  let placed = false;
  let lost = false;
  // The whole of a number of which only the beginning counts so far.
  let owed: { key: string; value: number } | undefined;

  const top = () => stack[stack.length - 1];

  function place(value: unknown, isNew: boolean): void {
    const container = top();
    if (container === undefined) root = value;
    else if (Array.isArray(container)) container[container.length - (isNew ? 0 : 1)] = value;
    else if (
      key === '__proto__' ||
      (key === 'prototype' && keys[keys.length - 1] === 'constructor')
    ) {
      dead = true;
    } else (container as Record<string, unknown>)[key] = value;
  }

  function commit(): void {
    if (bad) dead = true;
    if (owed === undefined) return;
    (top() as Record<string, unknown>)[owed.key] = owed.value;
    owed = undefined;
  }

  function afterValue(): number {
    const container = top();
    if (container === undefined) return DONE;
    return Array.isArray(container) ? ARRAY_AFTER_VALUE : OBJECT_AFTER_VALUE;
  }

  function open(container: object, next: number): void {
    place(container, true);
    stack.push(container);
    keys.push(key);
    key = '';
    state = next;
  }

  function close(): void {
    commit();
    stack.pop();
    key = keys.pop() ?? '';
    state = afterValue();
  }

  function skip(char: string): void {
    if (!isBlank(char)) bad = true;
  }

  function beginString(isKey: boolean): void {
    text = '';
    inKey = isKey;
    state = STRING;
  }

  /** Reads the first character of a value; false if it cannot be one. */
  function begin(char: string): boolean {
    if (char === '-' || isDigit(char)) {
      text = '';
      counted = 0;
      placed = lost = false;
      state = NUMBER;
      readNumber(char);
      return true;
    }
    const literal = WORDS[char];
    if (char !== '"' && char !== '{' && char !== '[' && literal === undefined) return false;
    commit();
    if (literal !== undefined) {
      [word] = literal;
      wordAt = 1;
      state = LITERAL;
      place(literal[1], true);
    } else if (char === '"') {
      beginString(false);
      place('', true);
    } else if (char === '{') open({}, OBJECT_START);
    else open([], ARRAY_START);
    return true;
  }

  function placeNumber(): void {
    if (counted === 0) return;
    const number = text.slice(0, counted);
    if (!STRICT_NUMBER.test(number)) dead = true;
    place(Number(number), !placed);
    placed = true;
  }

  function endNumber(): void {
    placeNumber();
    if (counted < text.length) {
      if (STRICT_NUMBER.test(text)) owed = { key, value: Number(text) };
      else bad = true;
    }
    state = afterValue();
  }

  function readNumber(char: string): void {
    const isInArray = Array.isArray(top());
    if (isDigit(char)) {
      text += char;
      if (!lost || isInArray) {
        commit();
        counted = text.length;
      }
    } else if (NUMBER_SIGNS.includes(char)) {
      text += char;
      if (lost && isInArray) dead = true;
      if (char === '+') lost = true;
    } else {
      endNumber();
      if (lost) read(char);
      else afterScalar(char);
    }
  }

  function afterScalar(char: string): void {
    const isInArray = state === ARRAY_AFTER_VALUE;
    if (state !== DONE && char === ',') state = isInArray ? ARRAY_AFTER_COMMA : OBJECT_AFTER_COMMA;
    else if (state !== DONE && char === (isInArray ? ']' : '}')) close();
    else skip(char);
  }

  function readEscape(char: string): void {
    state = STRING;
    const escaped = ESCAPES[char];
    if (escaped !== undefined) text += escaped;
    else if (char === 'u') {
      hex = '';
      state = UNICODE;
    } else if (inKey) bad = true;
    else dead = true;
  }

  function readUnicode(char: string): void {
    if (!HEX.test(char)) {
      bad = true;
      if (!inKey) return;
      state = STRING;
      readString(char, 0);
    } else if (hex.length < 3) hex += char;
    else {
      text += String.fromCharCode(Number.parseInt(hex + char, 16));
      state = STRING;
      if (!inKey) commit();
    }
  }

  /** Reads as much of an open string as there is; gives the place of the last character read. */
  function readString(input: string, from: number): number {
    let at = from;
    let code = input.charCodeAt(at);
    while (code !== QUOTE && code !== BACKSLASH && code >= FIRST_PRINTABLE) {
      code = input.charCodeAt(++at);
    }
    if (at > from) text += input.slice(from, at);
    if (code === BACKSLASH) state = ESCAPE;
    else if (code === QUOTE) {
      if (inKey) {
        key = text;
        state = OBJECT_AFTER_KEY;
      } else {
        place(text, false);
        state = afterValue();
      }
    } else if (at < input.length) {
      if (inKey) bad = true;
      else dead = true;
    }
    return at;
  }

  function readLiteral(char: string): void {
    if (char === word[wordAt]) wordAt++;
    else if (wordAt < word.length) dead = true;
    else {
      state = afterValue();
      afterScalar(char);
    }
  }

  function read(char: string): void {
    if (state === NUMBER) readNumber(char);
    else if (state === LITERAL) readLiteral(char);
    else if (state === ESCAPE) readEscape(char);
    else if (state === UNICODE) readUnicode(char);
    else if (state === OBJECT_AFTER_VALUE || state === DONE) afterScalar(char);
    else if (state === ARRAY_AFTER_VALUE) {
      afterScalar(char);
      // Here AI SDK counts whatever comes, but for the comma.
      if (state === ARRAY_AFTER_VALUE) commit();
    } else if (state === OBJECT_AFTER_KEY) {
      if (char === ':') state = OBJECT_BEFORE_VALUE;
      else skip(char);
    } else if (state === OBJECT_START || state === OBJECT_AFTER_COMMA) {
      if (char === '"') beginString(true);
      else if (char === '}' && state === OBJECT_START) close();
      else skip(char);
    } else if (char === ']' && state === ARRAY_START) close();
    else if (!begin(char)) skip(char);
  }

  return {
    push(input) {
      for (let at = 0; at < input.length && !dead; at++) {
        if (state === STRING) at = readString(input, at);
        else read(input[at] as string);
      }
    },
    get value() {
      if (state === NUMBER) {
        if (stack.length === 0 && !bad && STRICT_NUMBER.test(text)) return Number(text);
        placeNumber();
      } else if ((state === STRING || state === ESCAPE || state === UNICODE) && !inKey) {
        place(text, false);
      }
      if (dead) return undefined;
      return state === DONE && owed !== undefined && !bad ? owed.value : root;
    },
  };
}
