import { LOG_FAILED, SabirError } from '../../core/errors.ts';
import type { UIMessage } from '../../core/message.ts';
import { NO_LONGER_NEEDED } from '../../core/no-longer-needed.ts';
import type { Role } from '../../core/roles.ts';
import type { Channel, Logger } from '../../core/translator.ts';
import type { User } from '../../turns/upstream.ts';
import { systemClock } from '../clock.ts';
import { nameOf } from '../guard.ts';
import type { Clock, SessionSocket, SocketEvents } from '../options.ts';
import { parseFrame } from '../parse-frame.ts';
import { sessionKeyOf, toUIMessage } from '../records.ts';
import { isReplacing } from '../replacing.ts';
import type { Session } from '../session.ts';
import type { PromptInfo } from '../storage.ts';
import { waitingMessagesOf } from '../waiting-messages.ts';
import { LINK_PROTOCOL, type LinkEvent, type LinkRequest, readLinkRequest } from './protocol.ts';

/** The user that a gateway has connected for, with the role that it granted. */
export type GatewayInfo = { user: User; role: Role };

export type SessionLinksOptions = {
  clock?: Clock;
  logger?: Logger;
};

type LinkOptions = SessionLinksOptions & { readonly stoppedEarly: Set<string> };
type RequestOf<Type> = Extract<LinkRequest, { type: Type }>;

/** A turn that a gateway follows. */
type Following = { readonly prompt: PromptInfo; readonly stop: AbortController; position: number };

/**
 * How much of a turn is sent in one message: little enough that a connection that drops often still gets on. And how much
 * may wait to leave before more is read.
 */
const PIECE_BYTES = 4_000;
const MOST_WAITING_BYTES = 8_000_000;
const RETRY_MS = 20;
const MOST_STOPPED_EARLY = 100;

/**
 * The gateways elsewhere that are connected to one session. Each connection is for one user. A gateway is trusted: it has
 * checked who its user is, and reports what its users do.
 */
export class SessionLinks {
  #session: Session;
  #options: SessionLinksOptions;
  #links = new Set<Link>();
  /** Turns that were stopped before their prompt came, which may be on its way on an older connection. */
  #stoppedEarly = new Set<string>();
  #unsubscribe;

  constructor(session: Session, options: SessionLinksOptions = {}) {
    this.#session = session;
    this.#options = options;
    this.#unsubscribe = session.subscribe(() => {
      for (const link of this.#links) link.showQueue();
    });
  }

  connect(socket: SessionSocket, info: GatewayInfo): SocketEvents {
    const options = { ...this.#options, stoppedEarly: this.#stoppedEarly };
    const link = new Link(this.#session, socket, info, options);
    const leave = this.#session.people.enter(info.user, info.role, 'stream');
    this.#links.add(link);
    return {
      message: (frame) => link.receive(frame),
      close: () => {
        this.#links.delete(link);
        link.close();
        leave();
      },
    };
  }

  close(): void {
    this.#unsubscribe();
    for (const link of this.#links) link.close(1001, 'the session is closing');
    this.#links.clear();
  }
}

/** One connection of a gateway. */
class Link {
  #session: Session;
  #socket: SessionSocket;
  #info: GatewayInfo;
  #options: LinkOptions;
  /** By turn id. */
  #following = new Map<string, Following>();
  /** Settles when the last history that was asked for is sent. */
  #history: Promise<void> = Promise.resolve();
  #closing = new AbortController();

  constructor(session: Session, socket: SessionSocket, info: GatewayInfo, options: LinkOptions) {
    this.#session = session;
    this.#socket = socket;
    this.#info = info;
    this.#options = options;
    const { promptBytes: maxMessageBytes } = session.limits;
    const channels = session.storage.channels();
    this.#send({ type: 'init', protocol: LINK_PROTOCOL, maxMessageBytes, channels });
  }

  #send(event: LinkEvent): void {
    try {
      this.#socket.send(JSON.stringify(event));
    } catch {
      // The socket is gone; the platform reports it.
    }
  }

  receive(frame: string): void {
    const request = readLinkRequest(parse(frame));
    switch (request?.type) {
      case 'prompt':
        void this.#prompt(request, frame.length);
        break;
      case 'stop':
        void this.#attempt(() => this.#stop(request.turnId));
        break;
      case 'answer':
        void this.#attempt(() => this.#answer(request));
        break;
      case 'steer':
        void this.#attempt(() => this.#steer(request));
        break;
      case 'release':
        this.#release(request.turnId);
        break;
      case 'history':
        // One after the other, each when the gateway has read enough of the last.
        this.#history = this.#history.then(() => this.#attempt(() => this.#sendHistory(request)));
        break;
      case 'ping':
        this.#send({ type: 'pong' });
    }
  }

  async #prompt(request: RequestOf<'prompt'>, bytes: number): Promise<void> {
    const { type: _, turnId, channel, after, ...asked } = request;
    const prompting = { ...asked, ...channel, promptId: turnId, turnId, bytes };
    try {
      if (isReplacing(asked)) await this.#session.makeWay(prompting, this.#info);
      if (this.#options.stoppedEarly.has(turnId)) {
        this.#send({ type: 'withdrawn', turnId });
        return;
      }
      const { prompt } = this.#session.prompt(prompting, this.#info);
      this.#send({ type: 'accepted', turnId });
      void this.#follow(prompt, after);
    } catch (error) {
      const { code, userMessage } = this.#toError(error);
      this.#send({ type: 'refused', turnId, code, error: userMessage });
    }
  }

  async #sendHistory({ id, channel }: RequestOf<'history'>): Promise<void> {
    const { signal } = this.#closing;
    await this.#untilRead(signal);
    if (signal.aborted) return;
    this.#send({ type: 'history', id, messages: historyOf(this.#session, channel) });
  }

  async #follow(prompt: PromptInfo, after: number): Promise<void> {
    const { turnId } = prompt;
    this.#release(turnId);
    const following: Following = { prompt, stop: new AbortController(), position: 0 };
    this.#following.set(turnId, following);
    this.showQueue();
    try {
      const hasBegun = prompt.outcome !== 'withdrawn' && (await this.#session.whenBegun(prompt));
      // The next process has a prompt that still waits when this one closes, and the gateway comes back to it.
      if (following.stop.signal.aborted || this.#session.isClosed) return;
      if (!hasBegun) this.#send({ type: 'withdrawn', turnId });
      else if (!(await this.#pump(following, after))) this.#send({ type: 'gone', turnId });
    } catch (error) {
      this.#toError(error);
      this.#send({ type: 'gone', turnId });
    } finally {
      if (this.#following.get(turnId) === following) this.#following.delete(turnId);
    }
  }

  /** True if the turn's end was sent, or the gateway needs no more of it. */
  async #pump({ prompt, stop }: Following, after: number): Promise<boolean> {
    const { turnId } = prompt;
    const { log, sessionId } = this.#session;
    const known = await log.get(turnId);
    // The gateway names its turns, and the log has the turns of all sessions.
    const isOurs = known === undefined || known.sessionId === sessionKeyOf(sessionId);
    // After a crash of the machine the log may have less than the gateway.
    if (!isOurs || (known?.lastSeq ?? 0) < after) return false;
    for await (const batch of log.read(turnId, after, stop.signal, PIECE_BYTES)) {
      const last = batch.at(-1);
      if (!last) continue;
      const chunks = batch.map(({ chunk }) => chunk);
      this.#send({ type: 'chunks', turnId, seq: last.seq, chunks });
      if (last.chunk.type === 'finish') return true;
      await this.#untilRead(stop.signal);
    }
    return stop.signal.aborted;
  }

  /** Resolves when the gateway has read enough of what it was sent, or does not need more. */
  async #untilRead(signal: AbortSignal): Promise<void> {
    const { clock = systemClock } = this.#options;
    while ((this.#socket.bufferedAmount ?? 0) > MOST_WAITING_BYTES && !signal.aborted) {
      await new Promise<void>((resolve) => void clock.after(RETRY_MS, resolve));
    }
  }

  /** Sends the places in the queue that have changed. */
  showQueue(): void {
    const { queue, queueReason } = this.#session;
    for (const following of this.#following.values()) {
      const place = queue.positionOf(following.prompt);
      // While the agent is only being started, no prompt is in front of the first.
      const position = queueReason === 'waking' ? Math.max(0, place - 1) : place;
      if (position === following.position) continue;
      following.position = position;
      this.#send({ type: 'queue', turnId: following.prompt.turnId, position });
    }
  }

  async #stop(turnId: string): Promise<void> {
    const prompt = this.#session.storage.promptInfo('turnId', turnId);
    try {
      if (!prompt) this.#stopEarly(turnId);
      else await this.#session.stop(prompt, this.#info, 'stopped by the user');
    } catch (error) {
      // What the storage could not do is asked for again after the next drop.
      if (!(error instanceof SabirError)) throw error;
    }
    this.#send({ type: 'stopped', turnId });
  }

  #stopEarly(turnId: string): void {
    const { stoppedEarly } = this.#options;
    stoppedEarly.add(turnId);
    const [oldest] = stoppedEarly;
    if (stoppedEarly.size > MOST_STOPPED_EARLY) stoppedEarly.delete(oldest as string);
  }

  async #answer({ turnId, questionId, answer, by }: RequestOf<'answer'>): Promise<void> {
    const member = by ? { user: { id: by.userId }, role: by.role } : this.#info;
    const prompt = this.#session.find('turnId', turnId, member);
    await this.#session.answer(questionId, answer, member, prompt);
  }

  async #steer({ turnId, message }: RequestOf<'steer'>): Promise<void> {
    const { id, text, attachments, by } = message;
    const member = by ? { user: { id: by.userId }, role: by.role } : this.#info;
    const { user, role } = member;
    const steer = { type: 'steer', id, text, attachments, by: { userId: user.id, role } } as const;
    await this.#session.steer(this.#session.find('turnId', turnId, member), steer, member);
  }

  #release(turnId: string): void {
    this.#following.get(turnId)?.stop.abort(NO_LONGER_NEEDED);
    this.#following.delete(turnId);
  }

  async #attempt(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      this.#toError(error);
    }
  }

  #toError(error: unknown): SabirError {
    if (error instanceof SabirError) return error;
    const { sessionId } = this.#session;
    this.#options.logger?.error?.('a request of a gateway failed', {
      sessionId,
      error: nameOf(error),
    });
    return new SabirError(LOG_FAILED);
  }

  close(code?: number, reason?: string): void {
    this.#closing.abort(NO_LONGER_NEEDED);
    for (const turnId of [...this.#following.keys()]) this.#release(turnId);
    if (code !== undefined) this.#socket.close(code, reason);
  }
}

/**
 * What was said in a channel, without the answer that is being written: the latest that fits. Messages that wait for their
 * turn come last, and say so in their metadata. They get what is left of the limit, and past it they are excerpts.
 */
export function historyOf(session: Session, channel: Channel): UIMessage[] {
  const { storage, limits, queue } = session;
  const { initMessages: limit, initBytes: maxBytes } = limits;
  const said = storage.messages({ channel, limit, maxBytes }).map(toUIMessage);
  if (queue.size === 0) return said;
  const left = maxBytes - JSON.stringify(said).length;
  const waiting = waitingMessagesOf(session, channel, left);
  return [
    ...said,
    ...waiting.map(({ prompt, message, isExcerpt }) => {
      const place = { position: queue.positionOf(prompt), ...(isExcerpt && { isExcerpt }) };
      return { ...message, metadata: { queue: place } };
    }),
  ];
}

function parse(frame: string): unknown {
  try {
    return parseFrame(frame);
  } catch {
    return undefined;
  }
}
