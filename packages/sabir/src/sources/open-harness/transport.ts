import type { Trigger } from '../../core/chat-request.ts';
import type { PortableChunk } from '../../core/chunks.ts';
import type { LiveLog } from '../../core/live-log.ts';
import type { MessageLike, UIMessage } from '../../core/message.ts';
import type { OpenHarnessUIMessage, Runtime } from './events.ts';
import type { OpenHarnessOptions } from './options.ts';
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
  #options: OpenHarnessOptions;
  #driverOf: (runtime: unknown) => RuntimeDriver;
  /** Which runtime a chat is on while that runs or is paused. */
  #chats = new Map<string, RuntimeDriver>();
  /** The last message of a chat that is still on its way: what follows it waits for it. */
  #underWay = new Map<string, Promise<unknown>>();

  constructor(
    runtime: Runtime | (() => Runtime | Promise<Runtime>),
    options: OpenHarnessOptions = {},
  ) {
    this.#runtime = typeof runtime === 'function' ? runtime : assertRuntime(runtime);
    this.#options = options;
    this.#driverOf = createDrivers(options);
  }

  sendMessages(options: SendOptions<M>): Promise<ReadableStream<PortableChunk>> {
    const { chatId } = options;
    const earlier = this.#underWay.get(chatId);
    const sending = earlier ? earlier.then(() => this.#send(options)) : this.#send(options);
    this.#underWay.set(chatId, sending);
    sending.then(() => this.#underWay.get(chatId) === sending && this.#underWay.delete(chatId));
    return sending;
  }

  /** The chat's running turn from its first chunk, compacted; null if none is running. */
  async reconnectToStream(
    options: ReconnectOptions,
  ): Promise<ReadableStream<PortableChunk> | null> {
    const { chatId, abortSignal } = options;
    await this.#underWay.get(chatId);
    const driver = this.#chats.get(chatId);
    if (!driver?.live || abortSignal?.aborted) return null;
    return this.#view(driver.live, driver, abortSignal);
  }

  /** Stops the chat's running turn, for every viewer of it. */
  stop(chatId: string): void {
    const sending = this.#underWay.get(chatId);
    const stop = () => this.#chats.get(chatId)?.stop();
    if (sending) void sending.then(stop);
    else stop();
  }

  /** Never rejects: what goes wrong is said in the stream. */
  async #send(options: SendOptions<M>): Promise<ReadableStream<PortableChunk>> {
    const { chatId, trigger, abortSignal: signal } = options;
    // Each major has parts of its own; what is read here, role and text, is the same in all.
    const messages = options.messages as MessageLike[] as UIMessage[];
    try {
      const acknowledged = acknowledge(messages, trigger);
      if (acknowledged) return this.#view(acknowledged);
      const driver = signal?.aborted ? undefined : await this.#driverFor(chatId, trigger, signal);
      if (!driver) return this.#view(endedLog(this.#options, { status: 'stopped' }));
      const log = driver.send(messages);
      if (driver.live === log) {
        for (const [id, other] of this.#chats) {
          // A runtime carries on with whichever chat wrote last.
          if (other === driver || !other.isOccupied()) this.#chats.delete(id);
        }
        this.#chats.set(chatId, driver);
      }
      return this.#view(log, driver, signal);
    } catch (error) {
      return this.#view(failedLog(this.#options, error));
    }
  }

  /** Undefined if the request is aborted first, so that a factory that hangs holds nobody. */
  async #driverFor(
    chatId: string,
    trigger: Trigger,
    signal: AbortSignal | undefined,
  ): Promise<RuntimeDriver | undefined> {
    const given = this.#runtime;
    if (typeof given !== 'function') return this.#driverOf(given);
    const current = this.#chats.get(chatId);
    if (current?.isOccupied()) {
      if (trigger === 'submit-message') return current;
      current.stop();
    }
    const aborted = new Promise((resolve) => signal?.addEventListener('abort', resolve));
    const runtime = await Promise.race([given(), aborted]);
    return signal?.aborted ? undefined : this.#driverOf(runtime);
  }

  #view(log: LiveLog, driver?: RuntimeDriver, signal?: AbortSignal): ReadableStream<PortableChunk> {
    // An abort is all that a stock useChat can say: it means stop.
    signal?.addEventListener('abort', () => driver?.live === log && driver.stop(), { once: true });
    // The translator writes nothing that an AI SDK client of any major could not parse.
    return log.read() as ReadableStream<PortableChunk>;
  }
}
