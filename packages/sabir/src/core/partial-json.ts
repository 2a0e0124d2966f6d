/**
 * An incremental reader of JSON that has not all arrived: what a tool call's input looks like
 * while a model is still writing it.
 *
 * Owns a live tree and reads every character once, however the text is split, and only when
 * somebody looks. After any prefix of a JSON document `value` is what AI SDK's `parsePartialJson`
 * makes of that prefix: open strings, arrays and objects count as closed, a begun literal as whole,
 * a number as far as it is one, and a key only exists once its value has begun. But
 * - a key `__proto__` is left out with its value, and `constructor` and `prototype` are keys like
 *   others, where AI SDK has no value at all;
 * - `1e+5` in an object counts at once, and an escaped quote in a key does no harm;
 * - of a number the first thousand characters count.
 *
 * It does not check, for it has to be small. Commas and colons are blanks to it, any bracket closes
 * what is open, a bare word is a key or the literal that it begins like, a wrong escape is text, and
 * what makes no sense is skipped. So text that is not JSON has some value too: one that keeps what
 * was read before and, like every other, depends on the text alone and not on how it was split.
 */

export type PartialJson = {
  push(text: string): void;
  /**
   * What the text so far means; undefined while it means nothing.
   * The tree is live: a later look writes into it. Copy what must stay as it was.
   */
  readonly value: unknown;
};

type Tree = Record<string | number, unknown>;

const PLAIN = /[^"\\]*/y;

export function createPartialJson(unread = ''): PartialJson {
  // Holds the value; whatever follows that goes unseen into the places behind it.
  const root: unknown[] = [];
  let container = root as unknown as Tree;
  const outer: Tree[] = [];
  // The current value's place: null until it is asked for, false in an object until the key is read.
  let key: string | number | false | null | undefined;

  // What was read of the current string, number or literal.
  let text = '';
  // In a string its quote, and behind that an escape that has not all arrived.
  let quote = '';

  /** Puts a value into its place: the one being read, unless another is given. */
  function place(
    value: unknown = quote
      ? text
      : text[0] === 't'
        ? true
        : text[0] === 'f'
          ? false
          : text[0] === 'n'
            ? null
            : parseFloat(text),
  ): void {
    key ??= Array.isArray(container) && container.length;
    // biome-ignore lint/suspicious/noSelfCompare: says shortest that it is not NaN, the number of `-`
    if (key !== false && key !== '__proto__' && value === value) container[key] = value;
  }

  return {
    push(added) {
      unread += added;
    },
    get value() {
      for (let at = 0; at < unread.length; at++) {
        if (quote === '"') {
          // Most of a string is plain, and taken by the piece: of single letters a rope would be left.
          PLAIN.lastIndex = at;
          PLAIN.test(unread);
          text += unread.slice(at, PLAIN.lastIndex);
          at = PLAIN.lastIndex;
        }
        const char = unread[at];
        if (!char) break;
        if (quote[1] || (quote && char === '\\')) {
          quote += char;
          if (/\\[^u]|.{7}/s.test(quote)) {
            try {
              text += JSON.parse(`${quote}"`);
            } catch {
              text += quote;
            }
            quote = '"';
          }
        } else if (!quote && /[-+.\w]/.test(char)) {
          // Numbers and words are looked at from their beginning, so they must stay short.
          if (!text[999]) text += char;
        } else {
          if (text || quote) {
            place();
            key = key === false ? text : null;
          }
          text = '';
          quote = quote || char !== '"' ? '' : char;
          if (char === ']' || char === '}') {
            container = outer.pop() ?? ([] as unknown as Tree);
            key = null;
          }
          if (char === '[' || char === '{') {
            const inner = char === '[' ? [] : {};
            place(inner);
            outer.push(container);
            container = inner as Tree;
            key = null;
          }
        }
      }
      unread = '';
      place();
      return root[0];
    },
  };
}
