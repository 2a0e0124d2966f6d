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
type Writing = { id: string; at: number; writer: MessageWriter; read(event: StreamEvent): void };

export type Reducer<M> = {
  /** Never throws; what it cannot read changes nothing. */
  apply(event: StreamEvent): void;
  /** Nothing more will come: ends the blocks that are open. */
  close(): void;
  /** The same array until something changes, and in it the same messages where they did not. */
  messages: M[];
};

/** What is about a message, rather than about the run. */
const IS_OF_MESSAGE =
  /^(message|text|reasoning|tool|source|step|data|question|part|metadata|done)\b/;

/** For one chat: what is in `messages` already is kept, and never written into. */
export function createReducer<M extends MessageLike>(messages: M[]): Reducer<M> {
  // What an application calls a message has its parts; which parts those are is its own affair.
  let list = messages as MessageLike[] as UIMessage[];
  let current: Writing | undefined;

  /** The list, with what was written since somebody looked. */
  function collect(): UIMessage[] {
    if (current && list[current.at] !== current.writer.message) {
      list = list.slice();
      list[current.at] = current.writer.message;
    }
    return list;
  }

  /** One that is there already goes on, as far as its parts tell how; or it is told anew. */
  function begin(id: string, isAnew: boolean): void {
    let at = collect().findIndex((message) => message.id === id && message.role === 'assistant');
    if (at < 0) at = list.length;
    const writer = createMessageWriter(isAnew ? undefined : list[at], id);
    current = { id, at, writer, read: createReader(writer) };
  }

  const reducer: Reducer<UIMessage> = {
    apply(event) {
      try {
        const { type, data } = event;
        if (type === 'meta') {
          // A run is told from its beginning: what was told of it before is told once more.
          collect();
          current = undefined;
        } else if (IS_OF_MESSAGE.test(type) && (current || type !== 'done')) {
          const { messageId } = data as { messageId?: unknown };
          const last = list.at(-1);
          // Without an id it can only be the one that is being written, or was written last.
          const id = `${
            messageId || current?.id || (last?.role === 'assistant' && last.id) || createId()
          }`;
          if (id !== current?.id) begin(id, type === 'message.start');
          current?.read(event);
        }
      } catch {
        // Not even an object, or with a value that cannot be made a string: the rest is still good.
      }
    },
    close() {
      if (current) reducer.apply({ type: 'message.end', data: {} });
    },
    get messages() {
      return collect();
    },
    set messages(given) {
      list = given;
      current = undefined;
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
