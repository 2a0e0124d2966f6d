import { createId } from '../core/id.ts';
import { toJsonSafe } from '../core/json.ts';
import { toSafeLogger } from '../core/safe-logger.ts';
import { startTimer, type Timer } from '../core/timers.ts';
import type { Logger } from '../core/translator.ts';
import { within } from '../core/within.ts';
import {
  connect,
  type Socket,
  type SocketListener,
  type WebSocketConstructor,
} from '../sources/agent-ops/socket.ts';
import { type Agent, type AgentFunction, type SessionEvent, toAgent } from '../turns/agent.ts';
import { type AgentTurn, type PromptCommand, startAgentTurn } from './agent-turn.ts';
import { createOutbox } from './outbox.ts';
import type { RunnerHello } from './protocol.ts';
import { readRunnerCommand } from './read-runner-command.ts';

export type RunnerOptions = {
  sessionId: string;
  /** Where the session server is: `ws://host` or `http://host`. */
  url: string;
  agent: Agent | AgentFunction;
  /** Sent as `Authorization: Bearer`. */
  token?: string | (() => string | Promise<string>);
  /** Default: the platform's. The `ws` package's works too. */
  WebSocket?: WebSocketConstructor;
  /** How long to wait before connecting again: twice as long each time. Default 200 to 10,000. */
  retryMs?: { least?: number; most?: number };
  /** How often to ask whether the server is there. Default 30,000. */
  pingMs?: number;
  /** How long an agent that is told to stop may take. Default 5,000. */
  stopMs?: number;
  /** What may be unconfirmed while the connection is gone. Default 16 MB. */
  maxOutboxBytes?: number;
  /** What a person is shown of the agent's own errors. */
  errorText?: (error: unknown) => string;
  logger?: Logger;
};

const MOST_KNOWN = 50;
const FAREWELL_MS = 1_000;
const SHUT_DOWN = {
  status: 'failed',
  message: 'The agent was shut down.',
  code: 'run-aborted',
} as const;
const TOO_FAR_BEHIND = {
  status: 'failed',
  message: 'The agent could not tell its answer in time.',
  code: 'upstream-flood',
} as const;

/**
 * An agent's side of a session: prompts in, V2 events out. It comes back when the connection drops,
 * and says again what was not confirmed, and nothing else.
 *
 * @example
 * const runner = new Runner({ url, sessionId, agent: openCodeAgent() });
 * runner.start();
 */
export class Runner implements SocketListener {
  /** Tells this one from whichever comes after it, which knows nothing of what it did. */
  readonly runnerId = createId();
  #options: RunnerOptions;
  #socket: Socket | undefined;
  #outbox = createOutbox((frame) => this.#socket?.send(frame));
  #agent: Agent;
  #turn: AgentTurn | undefined;
  #next: PromptCommand[] = [];
  #known: string[] = [];
  #ready: Promise<void> | undefined;
  #pings: Timer | undefined;
  #unanswered = 0;
  #attempts = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #closing = new AbortController();
  #isLeaving = false;

  constructor(options: RunnerOptions) {
    const logger = toSafeLogger(options.logger);
    this.#options = { ...options, ...(logger && { logger }) };
    this.#agent = toAgent(options.agent);
  }

  get isConnected(): boolean {
    return this.#socket?.isOpen === true;
  }

  get isBusy(): boolean {
    return this.#turn !== undefined;
  }

  start(): void {
    // Whoever asks is told if it fails; until somebody asks there is nobody to tell.
    this.#getReady().catch(() => undefined);
    void this.#connect();
  }

  /** Ends what runs, says so, and lets everything go. */
  async close(): Promise<void> {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    const turn = this.#turn;
    for (const { turnId } of this.#next.splice(0)) this.#refuse(turnId);
    turn?.end(SHUT_DOWN);
    turn?.abort(this.#options.stopMs ?? 5_000);
    if (turn && this.isConnected) await within(FAREWELL_MS, this.#outbox.emptied());
    this.#closing.abort();
    clearTimeout(this.#retry);
    this.#hangUp();
    if (turn) await Promise.race([turn.ended, turn.abandoned]);
    await this.#closeAgent();
  }

  async #closeAgent(): Promise<void> {
    const { logger, stopMs = 5_000 } = this.#options;
    const agent = this.#agent;
    const closing = (async () => agent.close?.())().catch((error: unknown) => {
      logger?.warn('an agent did not close', { agent: agent.name, error });
    });
    await within(stopMs, closing);
  }

  /** It was given to us too late. */
  #refuse(turnId: string): void {
    const { message: error, code } = SHUT_DOWN;
    this.#outbox.add({ type: 'message.finalize', turnId, reason: 'error', error, code });
  }

  event(event: unknown): void {
    this.#unanswered = 0;
    const command = readRunnerCommand(event);
    switch (command?.type) {
      case 'prompt':
        this.#prompt(command);
        break;
      case 'abort':
        this.#abort(command.turnId);
        break;
      case 'answer':
        this.#turn?.answer(command.questionId, command.answer);
        break;
      case 'ack':
        this.#outbox.confirm(command.runnerSeq);
        break;
      case 'init':
        this.#outbox.confirm(command.data.lastRunnerSeq);
    }
  }

  drop(why: string): void {
    this.#options.logger?.warn('the runner lost its session', { why });
    this.#hangUp();
    this.#connectLater();
  }

  async #connect(): Promise<void> {
    const {
      WebSocket = globalThis.WebSocket as WebSocketConstructor,
      token,
      logger,
    } = this.#options;
    const { signal } = this.#closing;
    try {
      const socket = await connect(
        {
          url: toRunnerUrl(this.#options, this.runnerId),
          token: typeof token === 'function' ? await token() : token,
          WebSocket,
          maxEventBytes: 64_000_000,
          openMs: 15_000,
          // A session of ours says `init` at once, one of another make never.
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
    const hello: RunnerHello = {
      type: 'runner.hello',
      turnId: this.#turn?.turnId ?? null,
      known: this.#known,
      ...(this.#agent.needsHistory && { needsHistory: true }),
    };
    socket.send(hello);
    this.#outbox.sendAgain();
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

  /** Once, and again if it failed. */
  #getReady(): Promise<void> {
    const { sessionId, logger } = this.#options;
    this.#ready ??= (async () => {
      await this.#agent.start?.({
        sessionId,
        signal: this.#closing.signal,
        emit: (event) => this.#emit(event),
        ...(logger && { logger }),
      });
    })();
    this.#ready.catch(() => {
      this.#ready = undefined;
    });
    return this.#ready;
  }

  #emit(event: SessionEvent): void {
    this.#say(toJsonSafe(event) as SessionEvent);
  }

  #say(event: object): void {
    const { maxOutboxBytes = 16_000_000, stopMs = 5_000 } = this.#options;
    // What belongs to no turn is of no use to anybody later.
    if (this.#outbox.bytes > maxOutboxBytes && !this.#turn) return;
    this.#outbox.add(event);
    if (this.#outbox.bytes <= maxOutboxBytes) return;
    this.#turn?.end(TOO_FAR_BEHIND);
    this.#turn?.abort(stopMs);
  }

  #prompt(command: PromptCommand): void {
    if (this.#known.includes(command.turnId)) return;
    this.#known = [...this.#known.slice(1 - MOST_KNOWN), command.turnId];
    if (this.#isLeaving) {
      this.#refuse(command.turnId);
      return;
    }
    this.#next.push(command);
    if (!this.#turn) void this.#work();
  }

  async #work(): Promise<void> {
    const { sessionId, errorText } = this.#options;
    for (let command = this.#next.shift(); command; command = this.#next.shift()) {
      const turn = startAgentTurn({
        sessionId,
        command,
        agent: this.#agent,
        errorText,
        ready: this.#getReady(),
        say: (event) => this.#say(event),
        emit: (event) => this.#emit(event),
      });
      this.#turn = turn;
      await Promise.race([turn.ended, turn.abandoned]);
      this.#turn = undefined;
      if (!turn.hasEnded) await this.#restartAgent();
    }
  }

  /** It did not stop when it was told to: nothing else would ever be answered. */
  async #restartAgent(): Promise<void> {
    const { logger } = this.#options;
    logger?.warn('the agent did not stop, and is started anew', { agent: this.#agent.name });
    this.#ready = undefined;
    await this.#closeAgent();
  }

  #abort(turnId: string): void {
    const waiting = this.#next.findIndex((command) => command.turnId === turnId);
    if (waiting >= 0) {
      this.#next.splice(waiting, 1);
      this.#outbox.add({ type: 'message.finalize', turnId, reason: 'canceled' });
    }
    const turn = this.#turn;
    if (turn?.turnId !== turnId) return;
    turn.abort(this.#options.stopMs ?? 5_000);
  }
}

function toRunnerUrl({ url, sessionId }: RunnerOptions, runnerId: string): string {
  const address = new URL(url.replace(/^http/i, 'ws'));
  const base = address.pathname.replace(/\/+$/, '');
  address.pathname = `${base}/api/sessions/${encodeURIComponent(sessionId)}/ws`;
  address.searchParams.set('role', 'runner');
  address.searchParams.set('runnerId', runnerId);
  return address.href;
}
