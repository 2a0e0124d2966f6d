import type { Trigger } from '../../chat-request.ts';
import type { PortableChunk } from '../../chunks.ts';
import type { LiveLog } from '../../live-log.ts';
import type { MessageLike, UIMessage } from '../../message.ts';
import type { OpenHarnessUIMessage, Runtime } from './events.ts';
import type { OpenHarnessTransportOptions } from './options.ts';
import {
  acknowledge,
  assertRuntime,
  createDrivers,
  endedLog,
  failedLog,
  type RuntimeDriver,
} from './runtime-driver.ts';

type SendOptions<M> = {
  trigger: Trigger;
  chatId: string;
  messageId: string | undefined;
  messages: M[];
  abortSignal: AbortSignal | undefined;
};

type ReconnectOptions = { chatId: string; abortSignal?: AbortSignal | undefined };

/**
 * `useChat` on an Open Harness flow, in process.
 *
 * Give it a factory: one runtime is one run, so only a factory can serve a second message. A flow
 * that still runs, or is paused, gets the chat's next message itself.
 *
 * @example
 * const transport = new OpenHarnessChatTransport(() => createRuntime(flow));
 * const { messages, sendMessage } = useChat({ transport });
 */
export class OpenHarnessChatTransport<M extends MessageLike = OpenHarnessUIMessage> {
  /** `reconnectToStream` replays the turn from its first chunk. */
  readonly resumeStreamIsReplay = true;
  #runtime: Runtime | (() => Runtime | Promise<Runtime>);
  #options: OpenHarnessTransportOptions;
  #driverOf: (runtime: unknown) => RuntimeDriver;
  /** Which runtime a chat is on while that runs or is paused. */
  #chats = new Map<string, RuntimeDriver>();
  /** Chats whose runtime is being made: the next message waits to see it. */
  #starting = new Map<string, Promise<unknown>>();

  constructor(
    runtime: Runtime | (() => Runtime | Promise<Runtime>),
    options: OpenHarnessTransportOptions = {},
  ) {
    this.#runtime = typeof runtime === 'function' ? runtime : assertRuntime(runtime);
    this.#options = options;
    this.#driverOf = createDrivers(options);
  }

  async sendMessages(options: SendOptions<M>): Promise<ReadableStream<PortableChunk>> {
    const { chatId, trigger, abortSignal } = options;
    // Each major has parts of its own; what is read here, role and text, is the same in all.
    const messages = options.messages as MessageLike[] as UIMessage[];
    const acknowledged = acknowledge(messages, trigger);
    if (acknowledged) return this.#view(acknowledged);
    const earlier = this.#starting.get(chatId);
    if (earlier) await earlier;
    const starting = abortSignal?.aborted ? undefined : this.#driverFor(chatId, trigger);
    this.#starting.set(
      chatId,
      Promise.resolve(starting).catch(() => undefined),
    );
    try {
      const driver = await starting;
      if (!driver || abortSignal?.aborted) {
        return this.#view(endedLog(this.#options, { status: 'stopped' }));
      }
      for (const [id, other] of this.#chats) {
        // A runtime carries on with whichever chat wrote last.
        if (other === driver || !other.isOccupied) this.#chats.delete(id);
      }
      this.#chats.set(chatId, driver);
      return this.#view(driver.send(messages), driver, abortSignal);
    } catch (error) {
      return this.#view(failedLog(this.#options, error));
    } finally {
      this.#starting.delete(chatId);
    }
  }

  /** The chat's running turn from its first chunk, compacted; null if none is running. */
  async reconnectToStream(
    options: ReconnectOptions,
  ): Promise<ReadableStream<PortableChunk> | null> {
    const driver = this.#chats.get(options.chatId);
    const { abortSignal } = options;
    if (!driver?.live || abortSignal?.aborted) return null;
    return this.#view(driver.live, driver, abortSignal);
  }

  /** Stops the chat's running turn, for every viewer of it. */
  stop(chatId: string): void {
    this.#chats.get(chatId)?.stop();
  }

  async #driverFor(chatId: string, trigger: Trigger): Promise<RuntimeDriver> {
    const given = this.#runtime;
    const current = this.#chats.get(chatId);
    if (typeof given !== 'function') return this.#driverOf(given);
    if (current?.isOccupied) {
      if (trigger === 'submit-message') return current;
      current.stop();
    }
    return this.#driverOf(await given());
  }

  #view(log: LiveLog, driver?: RuntimeDriver, signal?: AbortSignal): ReadableStream<PortableChunk> {
    const { detachOnAbort } = this.#options;
    if (!detachOnAbort) {
      signal?.addEventListener('abort', () => driver?.live === log && driver.stop(), {
        once: true,
      });
    }
    // The translator writes nothing that an AI SDK client of any major could not parse.
    return log.read(detachOnAbort ? signal : undefined) as ReadableStream<PortableChunk>;
  }
}
