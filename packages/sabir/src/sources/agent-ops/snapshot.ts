import { isCallState } from './calls.ts';
import type { SessionMessage, ToolCallState } from './events.ts';

/** What a snapshot says, in the order of its parts. */
export type Snapshot = {
  content: Array<{ text: string } | { call: ToolCallState }>;
  isOver: boolean;
  reason: unknown;
  /** An error's message, or nothing where it has none. */
  errors: unknown[];
  /** Parts that are not what they should be. */
  isSound: boolean;
};

/** Undefined where the message is not a turn: its `parts` are an object then. */
export function readSnapshot({ content, parts }: SessionMessage): Snapshot | undefined {
  const snapshot: Snapshot = {
    content: [],
    isOver: false,
    reason: undefined,
    errors: [],
    isSound: true,
  };
  if (!Array.isArray(parts)) {
    if (parts !== undefined && parts !== null) return undefined;
    if (typeof content === 'string') snapshot.content.push({ text: content });
    return snapshot;
  }
  for (const part of parts as unknown[]) {
    const { type, text, reason, message } = (part ?? {}) as Record<string, unknown>;
    if (type === 'text' && typeof text === 'string') snapshot.content.push({ text });
    else if (type === 'tool-call' && isCallState(part as object)) {
      snapshot.content.push({ call: part as ToolCallState });
    } else if (type === 'finish') {
      snapshot.isOver = true;
      snapshot.reason = reason;
    } else if (type === 'error') snapshot.errors.push(message);
    else if (type === 'text' || type === 'tool-call' || typeof type !== 'string') {
      snapshot.isSound = false;
    }
  }
  if (snapshot.isOver) dropOverwritten(snapshot);
  return snapshot;
}

/**
 * One release writes the last text into every text part when the turn ends. Texts that are all the
 * same are said once, in the place of the last; the others keep their place, with nothing in it.
 */
function dropOverwritten({ content }: Snapshot): void {
  const texts = content.filter((part) => 'text' in part);
  const last = texts.at(-1);
  if (!last || texts.some(({ text }) => text !== last.text)) return;
  for (const part of texts) if (part !== last) part.text = '';
}

/** The texts of snapshots, said once: owns what was said of each text part. */
export function createSnapshotTexts() {
  const said: string[] = [];
  return {
    /** What is new in the text part at this place among the texts; `isOpen` if it can still grow. */
    news(place: number, text: string, isOpen: boolean): string {
      const before = said[place];
      if (before === undefined) {
        said[place] = text;
        return text;
      }
      const isGrown = isOpen && place === said.length - 1 && text.startsWith(before);
      if (!isGrown) return '';
      said[place] = text;
      return text.slice(before.length);
    },
  };
}
