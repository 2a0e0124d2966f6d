/**
 * Events → messages. What an event says is `read.ts`, what a message becomes of it is `message-writer.ts`:
 * here is which message it belongs to.
 */
import { createId } from '../../core/id.ts';
import type { MessageLike, UIMessage } from '../../core/message.ts';
import { createMessageWriter, type MessageWriter } from '../../core/message-writer.ts';
import type { StreamEvent } from './events.ts';
import { createReader } from './read.ts';

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
  /^(message|text|reasoning|tool\.(call|delta|result|approval)|source|step|data|question|part|metadata|done)\b/;

/** The last message, if that is an assistant's: what was answered, unless something was asked since. */
export function lastAnswer<M extends MessageLike>(list: M[]): M | undefined {
  return list.slice(-1).find((message) => message.role === 'assistant');
}

/** For one chat: what is in `messages` already is kept, and never written into. */
export function createReducer<M extends MessageLike>(messages?: M[]): Reducer<M>;
// What an application calls a message has its parts; which parts those are is its own affair.
export function createReducer(list: UIMessage[] = []): Reducer<UIMessage> {
  // The message that is being written, its place in the list, and what makes it of the events.
  let writing: string | undefined;
  let at: number;
  let writer: MessageWriter;
  let read: (event: StreamEvent) => void;

  const reducer: Reducer<UIMessage> = {
    apply(event) {
      try {
        const { type, data } = event;
        // A run is told from its beginning: what was told of it before is told once more.
        if (type === 'meta') {
          list = reducer.messages;
          writing = undefined;
        } else if (IS_OF_MESSAGE.test(type) && (writing || type !== 'done')) {
          const { messageId } = data as { messageId?: unknown };
          // Without an id it can only be the one that is being written, or was written last.
          const id = `${messageId || writing || lastAnswer(list)?.id || createId()}`;
          if (id !== writing) {
            let place = reducer.messages.findIndex(
              (one) => one.id === id && one.role === 'assistant',
            );
            if (place < 0) place = list.length;
            // One that is there already goes on, as far as its parts tell how; or it is told anew.
            writer = createMessageWriter(id, type === 'message.start' ? undefined : list[place]);
            read = createReader(writer);
            writing = id;
            at = place;
          }
          read(event);
        }
      } catch {
        // Not even an object, or with a value that cannot be made a string: the rest is still good.
      }
    },
    close() {
      if (writing) reducer.apply({ type: 'message.end', data: {} });
    },
    get messages() {
      // With what was written since somebody looked.
      if (writing && list[at] !== writer.message) {
        list = list.slice();
        list[at] = writer.message;
      }
      return list;
    },
    set messages(given) {
      list = given;
      writing = undefined;
    },
  };
  return reducer;
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
