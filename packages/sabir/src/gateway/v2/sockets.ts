import type { AuditEvent } from '../../core/audit.ts';
import { BODY_TOO_LARGE, LOG_FAILED, SabirError } from '../../core/errors.ts';
import type { Role } from '../../core/roles.ts';
import { toSafeLogger } from '../../core/safe-logger.ts';
import type { Logger } from '../../core/translator.ts';
import {
  type Clock,
  checkMayWrite,
  type Done,
  nameOf,
  type PromptInfo,
  type Session,
  type SessionLimits,
  type SessionNotice,
  type SessionSocket,
  type SocketEvents,
  systemClock,
} from '../../sessions/index.ts';
import type { ClientMessage, RefusalEvent } from '../../wires/agent-ops/protocol.ts';
import {
  type ReadClientMessage,
  readClientMessage,
} from '../../wires/agent-ops/read-client-message.ts';
import { type Client, type ClientInfo, createClients, TOO_FAR_BEHIND } from './clients.ts';
import { createFeed, type Feed } from './feed.ts';
import { createFollows } from './follows.ts';
import { toClientInit } from './init.ts';
import { createNotices } from './notices.ts';

export type { ClientInfo } from './clients.ts';

export type V2SocketsOptions = {
  clock?: Clock;
  /** A user has prompted, stopped, answered or withdrawn, or was refused. */
  onAudit?(event: Omit<AuditEvent, 'at'>): void;
  onLimit?(limit: keyof SessionLimits): void;
  logger?: Logger;
};

type MessageOf<Type> = Extract<ClientMessage, { type: Type }>;

/** The messages that change something, as an audit names them. */
const ACTIONS: ReadonlyMap<string, AuditEvent['action']> = new Map<string, AuditEvent['action']>([
  ['prompt', 'prompt'],
  ['withdraw', 'withdraw'],
  ['abort', 'stop'],
  ['answer', 'answer'],
]);

/** What a viewer may send. */
const HARMLESS: ReadonlySet<string> = new Set(['ping', 'follow']);

/** The V2 sockets of one session: deployed Agent Ops clients, and others that want a session and not only a chat. */
export class V2Sockets {
  #session: Session;
  #options: V2SocketsOptions;
  #clock;
  #logger;
  #clients;
  #follows;
  #notices;
  #feed: Feed | undefined;
  /** Notices that wait until the clients have all of the turn that has ended. */
  #held: SessionNotice[] = [];
  #unsubscribe;
  #isClosed = false;

  constructor(session: Session, options: V2SocketsOptions = {}) {
    this.#session = session;
    this.#options = options;
    this.#logger = toSafeLogger(options.logger);
    const { clock = systemClock } = options;
    this.#clock = clock;
    this.#clients = createClients({
      limits: session.limits,
      clock,
      onLimit: (limit) => options.onLimit?.(limit),
    });
    this.#follows = createFollows({
      session,
      clients: this.#clients,
      clock,
      positionOf: (turnId) =>
        this.#feed?.prompt.turnId === turnId ? this.#feed.position : Infinity,
    });
    this.#notices = createNotices({ session, clients: this.#clients });
    this.#unsubscribe = session.subscribe((notice) => this.#take(notice));
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Whether a V2 client reads the turn that runs. */
  get isWatching(): boolean {
    return this.#clients.size > 0;
  }

  /** A client's socket was accepted. Its messages, and its end, are to be given to what is returned. */
  connect(socket: SessionSocket, info: ClientInfo): SocketEvents {
    const client: Client = { ...info, socket, follows: [], held: [], heldBytes: 0 };
    let leave: (() => void) | undefined;
    let isGone = false;
    const depart = () => {
      isGone = true;
      this.#clients.remove(client);
      leave?.();
      leave = undefined;
    };
    // One message after the other, and none before `init`.
    let last: Promise<void> = this.#welcome(client).then(
      (entered) => {
        leave = entered;
        if (isGone) depart();
      },
      (error: unknown) => {
        this.#logger?.error?.('a client could not be shown its session', { error: nameOf(error) });
        socket.close(1011, 'the session is out of order');
      },
    );
    let waitingBytes = 0;
    return {
      message: (frame) => {
        // While the log is slow, a client that goes on sending must not fill the memory.
        if (
          waitingBytes > 0 &&
          waitingBytes + frame.length > this.#session.limits.clientBufferBytes
        ) {
          this.#options.onLimit?.('clientBufferBytes');
          socket.close(TOO_FAR_BEHIND, 'too many messages wait');
          return;
        }
        waitingBytes += frame.length;
        last = last.then(() => this.#receive(client, frame));
        void last.then(() => {
          waitingBytes -= frame.length;
        });
      },
      close: depart,
    };
  }

  /** Shows a newcomer the session as it stands; what follows comes to all. */
  async #welcome(client: Client): Promise<() => void> {
    if (this.#isClosed) {
      client.socket.close(1001, 'the session is closing');
      return () => undefined;
    }
    // In one step with what follows: what happens in between would be shown twice, or not at all.
    while (!this.#isClosed && !this.#isShown()) await this.#untilShown();
    if (this.#isClosed) return this.#welcome(client);
    const session = this.#session;
    // Presence first, so that `init` counts the newcomer; the others are notified, the newcomer is not yet a client.
    const leave = session.people.enter(client.user, client.role);
    try {
      const maxMessageBytes = this.#maxMessageBytes(client.role);
      const init = toClientInit(client, { session, feed: this.#feed, maxMessageBytes });
      const frame = JSON.stringify(init);
      client.onInit?.(frame.length);
      this.#clients.add(client);
      this.#clients.tellNow(client, frame);
      return leave;
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** A newcomer must not be shown the end of a turn, or what follows it, while the others wait for that end. */
  #isShown(): boolean {
    const feed = this.#ensureFeed();
    return !feed || (this.#isRunning(feed) && feed.isReady);
  }

  async #untilShown(): Promise<void> {
    const feed = this.#ensureFeed();
    if (!feed) return;
    if (this.#isRunning(feed)) await feed.ready;
    else {
      await feed.done;
      this.#endFeed(feed);
    }
  }

  #isRunning({ prompt }: Feed): boolean {
    return this.#session.running?.turnId === prompt.turnId;
  }

  /** Reads the turn that runs for as long as there are clients. */
  #ensureFeed(prompt = this.#session.running): Feed | undefined {
    // A turn that its log has lost is begun anew.
    const isBroken = this.#feed?.isBroken && this.#isRunning(this.#feed);
    if ((this.#feed && !isBroken) || !prompt) return this.#feed;
    const feed: Feed = createFeed({
      log: this.#session.log,
      prompt,
      hasBegun: this.#session.whenBegun(prompt),
      clients: this.#clients,
      clock: this.#clock,
      onEnd: () => this.#endFeed(feed),
    });
    this.#feed = feed;
    return feed;
  }

  #endFeed(feed: Feed): void {
    if (this.#feed !== feed || this.#isRunning(feed)) return;
    this.#feed = undefined;
    for (const notice of this.#held.splice(0)) this.#take(notice);
  }

  #take(notice: SessionNotice): void {
    const feed = this.#feed;
    if (feed && (notice.type === 'ended' || this.#held.length > 0)) {
      this.#held.push(notice);
      if (notice.type === 'ended') void feed.done.then(() => this.#endFeed(feed));
    } else if (this.#clients.size > 0) {
      this.#notices.show(notice);
      // It may have ended while the clients read the turn before.
      if (notice.type === 'begun') this.#ensureFeed(notice.prompt);
    }
  }

  async #receive(client: Client, frame: string): Promise<void> {
    // A client that was dismissed may still send.
    if (this.#isClosed || !this.#clients.includes(client)) return;
    const read = this.#read(client, frame);
    try {
      if (read.problem) throw new SabirError(read.problem);
      if (!HARMLESS.has(read.message.type)) checkMayWrite(client.role);
      this.#report(client, read.message.type, await this.#do(client, read.message, frame.length));
    } catch (error) {
      const { code } = this.#refuse(client, read.about, error);
      const { refused, promptId: _, turnId: __, ...ids } = read.about;
      this.#report(client, refused, { ...ids, code });
    }
  }

  /** Platforms may check the length before this; here it is checked before the frame is parsed. */
  #read({ role }: Client, frame: string): ReadClientMessage {
    if (frame.length <= this.#maxMessageBytes(role)) return readClientMessage(frame);
    this.#options.onLimit?.(role === 'viewer' ? 'viewerMessageBytes' : 'promptBytes');
    return { about: { refused: '' }, problem: BODY_TOO_LARGE };
  }

  #maxMessageBytes(role: Role): number {
    const { viewerMessageBytes, promptBytes } = this.#session.limits;
    return role === 'viewer' ? viewerMessageBytes : promptBytes;
  }

  /** What was done, if it is something to report. */
  async #do(client: Client, message: ClientMessage, bytes: number): Promise<Done | undefined> {
    const session = this.#session;
    switch (message.type) {
      case 'prompt':
        return this.#prompt(client, message, bytes);
      case 'withdraw':
        return session.withdraw(session.find('promptId', message.promptId, client), client);
      case 'abort':
        return this.#abort(client, message);
      case 'answer':
        return session.answer(message.questionId, message.answer, client);
      case 'follow': {
        const { turnId, after = 0 } = message;
        await this.#follows.add(client, session.find('messageId', turnId, client), after);
        break;
      }
      case 'ping':
        this.#clients.tell(client, { type: 'pong' });
    }
    return undefined;
  }

  #prompt(client: Client, message: MessageOf<'prompt'>, bytes: number): Done | undefined {
    const { content, model, turnId: messageId, attachments = [], type: _, ...rest } = message;
    const files = attachments.map(({ mime, url, filename }) => ({
      url,
      mediaType: mime,
      ...(filename !== undefined && { filename }),
    }));
    const { prompt, isNew } = this.#session.prompt(
      {
        ...rest,
        text: content,
        attachments: files,
        ...(messageId !== undefined && { messageId }),
        body: model === undefined ? {} : { model },
        bytes,
      },
      client,
    );
    if (isNew) return { turnId: prompt.turnId };
    this.#tellStanding(client, prompt);
    return undefined;
  }

  /** For a client that sends a prompt again, or stops one that is over: what has become of it. */
  #tellStanding(client: Client, prompt: PromptInfo): void {
    const { promptId, messageId: turnId, status, outcome } = prompt;
    const queued = this.#session.queue.find(promptId);
    if (queued) this.#clients.tell(client, this.#notices.toStanding(queued));
    else if (outcome === 'withdrawn') {
      this.#clients.tell(client, { type: 'queue.withdrawn', data: { promptId, turnId } });
    } else {
      const data = { promptKnown: promptId, turnId, turnStatus: status };
      this.#clients.tell(client, { type: 'status', data });
    }
  }

  async #abort(
    client: Client,
    { turnId, promptId }: MessageOf<'abort'>,
  ): Promise<Done | undefined> {
    const session = this.#session;
    const id = turnId ?? session.running?.messageId;
    if (promptId === undefined && id === undefined) return undefined;
    const prompt =
      promptId === undefined
        ? session.find('messageId', id as string, client)
        : session.find('promptId', promptId, client);
    const done = await session.stop(prompt, client);
    if (!done) this.#tellStanding(client, prompt);
    return done;
  }

  #report(
    client: Client,
    type: string,
    done: (Done & { code?: AuditEvent['code'] }) | undefined,
  ): void {
    const action = ACTIONS.get(type);
    if (!action || !done) return;
    const { user, role } = client;
    const { sessionId } = this.#session;
    const outcome = done.code === undefined ? 'accepted' : 'refused';
    this.#options.onAudit?.({
      action,
      outcome,
      userId: user.id,
      role,
      sessionId,
      ...done,
      via: 'socket',
    });
  }

  #refuse(
    client: Client,
    about: Omit<RefusalEvent, 'type' | 'code' | 'error'>,
    error: unknown,
  ): SabirError {
    const known = error instanceof SabirError ? error : new SabirError(LOG_FAILED);
    if (known !== error) {
      const { sessionId } = this.#session;
      this.#logger?.error?.('a request failed', { sessionId, error: nameOf(error) });
    }
    const { code, userMessage } = known;
    this.#clients.tell(client, { type: 'error', ...about, code, error: userMessage });
    return known;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#unsubscribe();
    this.#feed?.close();
    this.#clients.closeAll(1001, 'the session is closing');
  }
}
