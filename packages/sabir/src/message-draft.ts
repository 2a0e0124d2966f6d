/**
 * A message being written, and the messages shown of it on the way.
 *
 * Every message given out stays as it was: a part is copied the first time it changes after
 * somebody looked, and parts that did not change are the same objects from one look to the next.
 */
import type { UIMessage } from './message.ts';

export type Part = { type: string } & Record<string, unknown>;

/** Sets what has a value: a field without one is absent, not `undefined`. */
export function define<T extends object>(target: T, fields: object): T {
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined) (target as Record<string, unknown>)[key] = value;
  }
  return target;
}

export class MessageDraft {
  readonly parts: Part[];
  id: string;
  metadata: unknown;
  /** Whether the message shown last is out of date. */
  isChanged = false;

  #shown: UIMessage;
  // During which look each part was written; one written before an earlier look has been seen.
  #look = 1;
  readonly #written: number[];

  constructor(message: UIMessage) {
    this.#shown = message;
    this.id = message.id;
    this.metadata = message.metadata;
    this.parts = [...message.parts] as Part[];
    this.#written = this.parts.map(() => 0);
  }

  put(at: number, part: Part): Part {
    this.parts[at] = part;
    this.#written[at] = this.#look;
    this.isChanged = true;
    return part;
  }

  /** Appends a part and gives its place. */
  add(part: Part): number {
    this.put(this.parts.length, part);
    return this.parts.length - 1;
  }

  /** A part that may be written into. */
  own(at: number): Part {
    this.isChanged = true;
    const part = this.parts[at] as Part;
    return this.#written[at] === this.#look ? part : this.put(at, { ...part });
  }

  truncate(length: number): void {
    this.isChanged ||= length < this.parts.length;
    this.parts.length = this.#written.length = length;
  }

  /** The message as it is now; the same object until something changes. */
  show(): UIMessage {
    if (this.isChanged) {
      const { id, metadata } = this;
      const parts = this.parts.slice() as UIMessage['parts'];
      this.#shown = define({ ...this.#shown, id, parts }, { metadata });
      this.#look++;
      this.isChanged = false;
    }
    return this.#shown;
  }
}
