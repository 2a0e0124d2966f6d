/**
 * Events → messages. What an event says is `read.ts`, what a message becomes of it is `message-writer.ts`:
 * here is which message it belongs to.
 */
import { createId } from '../id.ts';
import type { MessageLike, UIMessage } from '../message.ts';
import { createMessageWriter, type MessageWriter } from '../message-writer.ts';
import type { StreamEvent } from './events.ts';
import { createReader } from './read.ts';

/** A message being written: its place in the list, and what makes it of the events. */
type Writing = { at: number; writer: MessageWriter; read(event: StreamEvent): void };

export type Reducer<M> = {
  /** Never throws; what it cannot read changes nothing. */
  apply(event: StreamEvent): void;
  /** Nothing more will come: ends the blocks that are open. */
  close(): void;
  /** Puts a message at the end, whatever is being written before it. */
  append(message: M): void;
  /** The same array until something changes, and in it the same messages where they did not. */
  messages: M[];
};

/** What is about a message, rather than about the run. */
const IS_OF_MESSAGE = /^(message|text|reasoning|tool|source|step|data|question|part|metadata)\b/;

/** For one chat: what is in `messages` already is kept, and never written into. */
export function createReducer<M extends MessageLike>(messages: M[]): Reducer<M> {
  // What an application calls a message has its parts; which parts those are is its own affair.
  let list = messages as MessageLike[] as UIMessage[];
  let current: string | undefined;
  const writing = new Map<string, Writing>();
  const changed = new Set<Writing>();

  function put(entry: Writing, event: StreamEvent): void {
    changed.add(entry);
    try {
      entry.read(event);
    } catch {
      // A value that cannot even be made a string: the rest of the turn is still good.
    }
  }

  /** One that is there already goes on, as far as its last words tell how; or it is told anew. */
  function begin(messageId: string, isAnew: boolean): Writing {
    const found = list.findIndex(({ id, role }) => id === messageId && role === 'assistant');
    const old = isAnew ? undefined : list[found];
    const last = old?.parts.at(-1);
    const open = last?.type === 'text' && last.state !== 'done' ? last : undefined;
    const writer = createMessageWriter(
      old && open ? { ...old, parts: old.parts.slice(0, -1) } : old,
    );
    const entry = { at: found < 0 ? list.length : found, writer, read: createReader(writer) };
    writer.head.id = messageId;
    if (open) put(entry, { type: 'message.delta', data: { messageId, delta: open.text } });
    if (found < 0) list = [...list, writer.message];
    writing.set(messageId, entry);
    return entry;
  }

  /** The message that an event without an id must mean. */
  function guess(): string {
    const last = list.at(-1);
    return current ?? (last?.role === 'assistant' ? last.id : createId());
  }

  const reducer: Reducer<UIMessage> = {
    apply(event) {
      const { type, data } = Object(event) as StreamEvent;
      if (IS_OF_MESSAGE.test(type)) {
        const { messageId } = (data ?? {}) as { messageId?: unknown };
        current = typeof messageId === 'string' && messageId ? messageId : guess();
        put(writing.get(current) ?? begin(current, type === 'message.start'), event);
      } else if (type === 'meta') {
        // A run is told from its beginning: what was told of it before is told once more.
        writing.clear();
        current = undefined;
      } else if (type === 'done' && current !== undefined) {
        const entry = writing.get(current);
        if (entry) put(entry, event);
      }
    },
    close() {
      for (const entry of writing.values()) put(entry, { type: 'message.end', data: {} });
    },
    append(message) {
      list = [...list, message];
    },
    get messages() {
      if (changed.size > 0) {
        list = list.slice();
        for (const { at, writer } of changed) list[at] = writer.message;
        changed.clear();
      }
      return list;
    },
    set messages(given) {
      list = given;
      writing.clear();
      changed.clear();
    },
  };
  return reducer as Reducer<never> as Reducer<M>;
}

const reducers = new WeakMap<readonly MessageLike[], unknown>();

/**
 * The messages after an event. Pure: what is given stays as it is, and messages and parts that the
 * event does not touch are the same objects afterwards. Never throws.
 *
 * ```ts
 * for (const event of events) messages = applyEvent(messages, event);
 * ```
 */
export function applyEvent<M extends MessageLike = UIMessage>(
  messages: M[],
  event: StreamEvent,
): M[] {
  // Found again by the list it gave last. From any other list a new one takes up what is there.
  const known = reducers.get(messages) as Reducer<M> | undefined;
  const reducer = known ?? createReducer(messages);
  reducer.apply(event);
  const next = reducer.messages;
  reducers.delete(messages);
  reducers.set(next, reducer);
  return next;
}
