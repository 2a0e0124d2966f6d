import type { Chunk } from '../core/chunks.ts';
import { createId } from '../core/id.ts';
import { toJsonSafe } from '../core/json.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import { toSafeLogger } from '../core/safe-logger.ts';
import { afterThisTick, startTimer, type Timer } from '../core/timers.ts';
import type { Logger } from '../core/translator.ts';
import { within } from '../core/within.ts';
import { withoutContent } from '../core/without-content.ts';
import {
  connect,
  type Socket,
  type SocketListener,
  type WebSocketConstructor,
} from '../sources/agent-ops/socket.ts';
import type { AgentRun } from '../sources/ai-sdk/agent-run.ts';
import { type Agent, type AgentFunction, type SessionEvent, toAgent } from '../turns/agent.ts';
import { closingsOf } from '../turns/closings.ts';
import { type AgentWorker, createAgentWorker } from './agent-worker.ts';
import { createOutbox } from './outbox.ts';
import { type RunnerCommand, type RunnerFrame, readRunnerCommand } from './runner-protocol.ts';
import { sessionUrl } from './session-url.ts';

export type RunnerOptions = {
  sessionId: string;
  /** Where the session server is: `ws://host` or `http://host`. */
  url: string;
  agent: Agent | AgentFunction;
  /** Sent as `Authorization: Bearer`. */
  token?: string | (() => string | Promise<string>);
  /** @default the platform's; the `ws` package's works too */
  WebSocket?: WebSocketConstructor;
  /** How long to wait before connecting again: twice as long each time. @default 200 to 10_000 */
  retryMs?: { least?: number; most?: number };
  /** How often to ask whether the server is there. @default 30_000 */
  pingMs?: number;
  /** How long an agent that was told to stop may take. @default 5_000 */
  stopMs?: number;
  /** What may be unconfirmed while the connection is gone. @default 16_000_000 */
  maxOutboxBytes?: number;
  /** What a person is shown of the agent's own errors. */
  errorText?: (error: unknown) => string;
  logger?: Logger;
};

type PromptCommand = Extract<RunnerCommand, { type: 'prompt' }>;
type SteerCommand = Extract<RunnerCommand, { type: 'steer' }>;
/** A prompt that waits until the agent has ended the turn before it, and the messages for its turn. */
type Waiting = PromptCommand & { steers: SteerCommand[] };

/** The prompt that the agent works on. */
type Work = { readonly turnId: string; readonly run: AgentRun };

const MOST_KNOWN = 50;
const CONFIRM_MS = 1_000;
const SHUT_DOWN: TurnOutcome = {
  status: 'failed',
  code: 'run-aborted',
  message: 'The agent was shut down.',
};
const TOO_FAR_BEHIND: TurnOutcome = {
  status: 'failed',
  code: 'upstream-flood',
  message: 'The agent could not send its answer in time.',
};

/**
 * A process that hosts an agent and connects to its session: prompts in, chunks out. When the connection drops, the runner
 * comes back and sends again what the session has not confirmed, and nothing else.
 *
 * @example
 * const runner = new Runner({ url, sessionId, agent: openCodeAgent() });
 * runner.start();
 */
export class Runner implements SocketListener {
  /** Tells this one from the one that comes after it, which knows nothing of what this one did. */
  readonly runnerId = createId();
  #options: RunnerOptions;
  #socket: Socket | undefined;
  #outbox = createOutbox((frame) => this.#socket?.send(frame));
  #worker: AgentWorker;
  #needsHistory: boolean;
  #work: Work | undefined;
  #next: Waiting[] = [];
  #known: string[] = [];
  #pings: Timer | undefined;
  #unanswered = 0;
  #attempts = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #closing = new AbortController();
  #isLeaving = false;
  /** Settles when the session knows that the runner leaves. */
  #dismissed = Promise.withResolvers<void>();
  /** Session events, as frames, that wait for a connection. */
  #unsent: string[] = [];
  #unsentBytes = 0;

  constructor(options: RunnerOptions) {
    const { sessionId, stopMs = 5_000 } = options;
    const agent = toAgent(options.agent);
    this.#needsHistory = agent.needsHistory === true;
    const logger = toSafeLogger(options.logger);
    this.#options = { ...options, ...(logger && { logger }) };
    this.#worker = createAgentWorker({
      sessionId,
      agent,
      stopMs,
      emit: (event) => this.#emit(event),
      onFree: () => this.#takeNext(),
      logger,
    });
  }

  get isConnected(): boolean {
    return this.#socket?.isOpen === true;
  }

  get isBusy(): boolean {
    return this.#worker.isBusy;
  }

  start(): void {
    this.#worker.start();
    void this.#connect();
  }

  /** Ends what runs, reports it, and closes the agent. */
  async close(): Promise<void> {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    const work = this.#work;
    for (const { prompt } of this.#next.splice(0)) this.#refuse(prompt);
    work?.run.end(SHUT_DOWN);
    if (this.isConnected) await within(CONFIRM_MS, this.#sayBye());
    this.#closing.abort();
    clearTimeout(this.#retry);
    this.#hangUp();
    await this.#worker.close();
  }

  /** Resolves when no prompt is on its way, and the session has everything. */
  async #sayBye(): Promise<void> {
    this.#socket?.send({ type: 'bye' } satisfies RunnerFrame);
    await this.#dismissed.promise;
    await this.#outbox.emptied();
  }

  /** A turn that never reaches the agent. */
  #refuse({ turnId, messageId }: PromptCommand['prompt'], outcome: TurnOutcome = SHUT_DOWN): void {
    this.#outbox.add(turnId, closingsOf([], messageId, outcome));
  }

  event(event: unknown): void {
    this.#unanswered = 0;
    const command = readRunnerCommand(event);
    switch (command?.type) {
      case 'prompt':
        this.#prompt(command);
        break;
      case 'stop':
        this.#stop(command.turnId);
        break;
      case 'answer': {
        const { turnId, questionId, answer } = command;
        if (this.#work?.turnId === turnId) {
          this.#work.run.answer({ type: 'answer', questionId, answer });
        }
        break;
      }
      case 'steer':
        this.#steer(command);
        break;
      case 'expire':
        if (this.#work?.turnId === command.turnId) this.#work.run.expire?.(command.questionId);
        break;
      case 'ack':
        this.#outbox.confirm(command.turnId, command.seq);
        break;
      case 'pong':
        if (this.#isLeaving) this.#dismissed.resolve();
    }
  }

  drop(why: string): void {
    this.#options.logger?.warn('the runner lost its session', { why });
    this.#hangUp();
    // Nothing is on its way any more.
    if (this.#isLeaving) this.#dismissed.resolve();
    this.#connectLater();
  }

  async #connect(): Promise<void> {
    const { url, sessionId, token, logger } = this.#options;
    const { WebSocket = globalThis.WebSocket as WebSocketConstructor } = this.#options;
    const { signal } = this.#closing;
    try {
      const socket = await connect(
        {
          url: sessionUrl(url, sessionId, { role: 'runner', runnerId: this.runnerId }),
          token: typeof token === 'function' ? await token() : token,
          WebSocket,
          maxEventBytes: 64_000_000,
          openMs: 15_000,
          // A session of ours sends `init` at once.
          initMs: 500,
        },
        this,
        signal,
      );
      this.#attempts = 0;
      this.#greet(socket);
    } catch (error) {
      if (signal.aborted) return;
      logger?.warn('the runner cannot reach its session', { error });
      this.#connectLater();
    }
  }

  #greet(socket: Socket): void {
    this.#socket = socket;
    this.#unanswered = 0;
    this.#pings = startTimer(this.#options.pingMs ?? 30_000, () => this.#ping());
    const hello: RunnerFrame = {
      type: 'hello',
      turnId: this.#work?.turnId ?? null,
      known: this.#known,
      ...(this.#needsHistory && { needsHistory: true }),
    };
    socket.send(hello);
    this.#outbox.sendAgain();
    for (const frame of this.#unsent.splice(0)) socket.send(frame);
    this.#unsentBytes = 0;
  }

  #connectLater(): void {
    if (this.#closing.signal.aborted) return;
    const { least = 200, most = 10_000 } = this.#options.retryMs ?? {};
    const wait = Math.min(most, least * 2 ** this.#attempts++);
    // Many that were dropped at once should not all come back at once.
    this.#retry = setTimeout(() => void this.#connect(), wait * (0.5 + Math.random() / 2));
  }

  #hangUp(): void {
    this.#pings?.clear();
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
  }

  #ping(): void {
    if (this.#unanswered++ === 2) this.drop('The server has gone silent.');
    else this.#socket?.send({ type: 'ping' });
  }

  /** Session events are not confirmed. While there is no connection, the latest of them are kept. */
  #emit(event: SessionEvent): void {
    const given = { type: 'event', event: toJsonSafe(event) as SessionEvent } as const;
    const frame = JSON.stringify(given satisfies RunnerFrame);
    if (this.#socket) {
      this.#socket.send(frame);
      return;
    }
    this.#unsent.push(frame);
    this.#unsentBytes += frame.length;
    while (this.#unsentBytes > this.#maxOutboxBytes) {
      this.#unsentBytes -= this.#unsent.shift()?.length ?? 0;
    }
  }

  get #maxOutboxBytes(): number {
    return this.#options.maxOutboxBytes ?? 16_000_000;
  }

  #prompt(command: PromptCommand): void {
    const { prompt } = command;
    if (this.#known.includes(prompt.turnId)) return;
    this.#known = [...this.#known.slice(1 - MOST_KNOWN), prompt.turnId];
    if (this.#isLeaving) {
      this.#refuse(prompt);
      return;
    }
    this.#next.push({ ...command, steers: [] });
    this.#takeNext();
  }

  #takeNext(): void {
    if (this.#worker.isBusy) return;
    this.#work = undefined;
    const command = this.#next.shift();
    if (command) this.#answer(command);
  }

  #answer({ prompt, questionMs, steers }: Waiting): void {
    const { errorText } = this.#options;
    const { turnId } = prompt;
    let chunks: Chunk[] = [];
    let isOver = false;
    const flush = () => {
      if (chunks.length === 0) return;
      const sent = chunks;
      chunks = [];
      this.#outbox.add(turnId, sent);
      if (this.#outbox.bytes > this.#maxOutboxBytes) run.end(TOO_FAR_BEHIND);
    };
    const take = (made: Chunk[]) => {
      if (made.length === 0 || isOver) return;
      if (chunks.length === 0) afterThisTick(flush);
      chunks.push(...made);
      isOver = run.translator.ended;
      if (!isOver) return;
      flush();
      run.release();
    };
    const run = this.#worker.run(
      { ...prompt, ...(errorText && { errorText }) },
      {
        event: (event) => take(run.translator.push(event)),
        close: (outcome) => take(run.translator.end(outcome)),
      },
      questionMs,
    );
    this.#work = { turnId, run };
    for (const command of steers) this.#steer(command);
  }

  #steer(command: SteerCommand): void {
    const { turnId, message } = command;
    this.#next.find(({ prompt }) => prompt.turnId === turnId)?.steers.push(command);
    if (this.#work?.turnId !== turnId) return;
    const doing = (async () => this.#work?.run.steer?.(message))();
    doing.catch((error: unknown) =>
      this.#options.logger?.error?.('the agent failed to take a message', {
        turnId,
        error: withoutContent(error),
      }),
    );
  }

  #stop(turnId: string): void {
    const waiting = this.#next.findIndex(({ prompt }) => prompt.turnId === turnId);
    const [stopped] = waiting < 0 ? [] : this.#next.splice(waiting, 1);
    if (stopped) this.#refuse(stopped.prompt, { status: 'stopped' });
    if (this.#work?.turnId === turnId) this.#work.run.stop();
  }
}
