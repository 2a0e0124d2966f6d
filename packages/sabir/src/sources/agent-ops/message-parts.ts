import type { MessageAccumulator } from '../../core/accumulator.ts';
import type { DataState, MessagePart } from './events.ts';
import { dataKeyOf, toFileChunk, toSourceChunk } from './part-shapes.ts';

type Block = 'text' | 'reasoning';
type Source = Extract<MessagePart, { type: 'source' }>;
type File = Extract<MessagePart, { type: 'file' }>;
type Text = Extract<MessagePart, { type: Block }>;
/** What is no text and has no id. */
type Other = Extract<MessagePart, { type: 'step' | 'source' | 'file' | 'data' }>;

/**
 * The parts of a message but for its calls and questions, said as they come or told by a snapshot.
 *
 * Owns how far they were said, so that a snapshot adds only what was missed: how many of each kind,
 * how much of the last text, of data with an id its value. And whether the step has anything in it,
 * so that there are no empty steps.
 */
export function createMessageParts(accumulator: MessageAccumulator, beforeStep: () => void) {
  /** How many there are; `other` is what is no text and has no id. */
  let counts = { text: 0, reasoning: 0, other: 0 };
  /** Of the text that was written last. */
  let length = 0;
  let isStepEmpty = true;
  const values = new Map<string, string>();

  function write(kind: Block, text: string): void {
    if (accumulator.openBlock !== kind) {
      counts[kind]++;
      length = 0;
      isStepEmpty = false;
    }
    length += text.length;
    accumulator.delta(kind, text);
  }

  function step(): void {
    if (isStepEmpty) return;
    beforeStep();
    accumulator.startStep();
    counts.other++;
    isStepEmpty = true;
  }

  function add(part: Source | File): void {
    counts.other++;
    isStepEmpty = false;
    accumulator.part(part.type === 'file' ? toFileChunk(part) : toSourceChunk(part));
  }

  function data(part: DataState, isTransient = false): void {
    const key = dataKeyOf(part);
    const id = key === undefined ? undefined : { id: part.id as string };
    if (isTransient) {
      accumulator.data(part.name, part.data, { ...id, transient: true });
      return;
    }
    if (key === undefined) {
      counts.other++;
      isStepEmpty = false;
    } else {
      const value = JSON.stringify(part.data) ?? '';
      const before = values.get(key);
      if (before === value) return;
      values.set(key, value);
      if (before === undefined) isStepEmpty = false;
    }
    accumulator.data(part.name, part.data, id);
  }

  function isOpen(kind: Block, place: number): boolean {
    return accumulator.openBlock === kind && place === counts[kind] - 1;
  }

  function goOn(part: Text, place: number): void {
    if (!isOpen(part.type, place)) return;
    const rest = part.text.slice(length);
    if (rest !== '') write(part.type, rest);
  }

  function tellText(part: Text, place: number): void {
    const { type: kind, text, streaming } = part;
    if (place >= counts[kind] && text !== '') {
      // Two texts in a row are two parts.
      if (accumulator.openBlock === kind) accumulator.closeBlock();
      write(kind, text);
    }
    if (streaming === false && isOpen(kind, place)) accumulator.closeBlock();
  }

  function tellOther(part: Other): void {
    if (part.type === 'step') step();
    else if (part.type === 'data') data(part);
    else add(part);
  }

  return {
    write,
    step,
    add,
    data,
    /** A call or a question is in the step. */
    touch(): void {
      isStepEmpty = false;
    },
    /** The turn is begun anew: what was said stays, and is not counted. */
    restart(): void {
      counts = { text: 0, reasoning: 0, other: 0 };
      isStepEmpty = true;
    },
    /** Says what is new in a snapshot, with its texts or without; `tell` says what is not ours. */
    catchUp(
      content: readonly MessagePart[],
      hasTexts: boolean,
      tell: (part: MessagePart) => void,
    ): void {
      const wanted = content.filter(({ type }) => hasTexts || type !== 'text');
      // The open text is gone on with before anything else can close it.
      eachText(wanted, goOn);
      const places = { text: 0, reasoning: 0, other: 0 };
      for (const part of wanted) {
        if (isText(part)) tellText(part, places[part.type]++);
        else if (part.type === 'data' && dataKeyOf(part) !== undefined) data(part);
        else if (!isOther(part)) tell(part);
        else if (places.other++ >= counts.other) tellOther(part);
      }
    },
  };
}

function eachText(content: MessagePart[], run: (part: Text, place: number) => void): void {
  const places = { text: 0, reasoning: 0 };
  for (const part of content) if (isText(part)) run(part, places[part.type]++);
}

function isText(part: MessagePart): part is Text {
  return part.type === 'text' || part.type === 'reasoning';
}

function isOther(part: MessagePart): part is Other {
  const { type } = part;
  return type === 'step' || type === 'source' || type === 'file' || type === 'data';
}
