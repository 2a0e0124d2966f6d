/**
 * An Agent Ops session server on a real socket: plays recordings and scripts in both dialects, and
 * misbehaves on demand. It queues, broadcasts, aborts and remembers as the real one does.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { createPlay, type Message, misbehave, rawOf, type Stored } from './agent-ops-play.ts';
import { aborted, type Dialect, defaultScript, type Script } from './agent-ops-script.ts';

export type Connection = {
  readonly sessionId: string;
  readonly headers: IncomingHttpHeaders;
  readonly url: string;
  /** Everything the client sent. */
  readonly received: Message[];
  readonly isOpen: boolean;
};

/** What the next connection gets instead of a good one. */
export type ConnectionFault = { refuse: number } | { delayMs: number } | { hang: true };

export type AgentOpsServerOptions = {
  dialect?: Dialect;
  /** How an abort ends, and whether `init` tells the messages. */
  release?: 'rfc' | 'head';
  script?: (text: string) => Script;
  /** Whose token it is; nothing to refuse it. Default: everybody is let in as `u1`. */
  userOf?: (token: string | undefined) => string | undefined;
  /** Whether there is an `init` at all. */
  hasInit?: boolean;
  /** Whether a user's message is shown to everybody. */
  hasEcho?: boolean;
  /** Keeps a waiting prompt to itself until it is sent, and only the last one, as the newest do. */
  keepsQueued?: boolean;
  /** Whether it tells that a prompt waits, and when it no longer does. */
  hasQueueStatus?: boolean;
  /** Whether an abort clears the queue. */
  clearsQueue?: boolean;
  /** When an abort is told the second time, by the newer release. */
  lateMs?: number;
  /** Whether it knows how to abort at all. */
  isDeafToAbort?: boolean;
  /** How many frames go out in one write. */
  cork?: number;
};

type Client = Connection & { socket: WebSocket; userId: string; isSilent: boolean; corked: number };
type Job = { prompt: Message; from: Client; turnId: string; number: number; stop: AbortController };
type Session = {
  id: string;
  messages: Stored[];
  clients: Set<Client>;
  queue: Job[];
  running?: Job | undefined;
  answers: Map<string, (answer: unknown) => void>;
};

export type AgentOpsServer = Awaited<ReturnType<typeof startAgentOpsServer>>;

export async function startAgentOpsServer(options: AgentOpsServerOptions = {}) {
  const { dialect = 'snapshot', release = 'rfc', hasInit = true, hasEcho = true } = options;
  const { clearsQueue = true, keepsQueued = false, lateMs = 40, cork = 0 } = options;
  const { hasQueueStatus = true } = options;
  const sessions = new Map<string, Session>();
  const connections: Client[] = [];
  const faults: ConnectionFault[] = [];
  const sockets = new Set<Socket>();
  const timers = new Set<ReturnType<typeof setTimeout>>();
  let turns = 0;
  let isClosingOnPrompt = false;

  const http = createServer((_, response) => response.writeHead(404).end());
  const wss = new WebSocketServer({ noServer: true, perMessageDeflate: false });

  http.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  http.on('upgrade', (request, socket, head) => {
    const fault = faults.shift();
    if (fault && 'hang' in fault) return;
    const sessionId = /^\/api\/sessions\/([^/]+)\/ws$/.exec(pathOf(request).pathname)?.[1];
    const [, token] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    const userId = options.userOf ? options.userOf(token) : 'u1';
    const status = fault && 'refuse' in fault ? fault.refuse : !sessionId ? 404 : userId ? 0 : 401;
    if (status) {
      socket.end(`HTTP/1.1 ${status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
      return;
    }
    const accept = () =>
      wss.handleUpgrade(request, socket, head, (ws) => {
        join(ws, request, decodeURIComponent(sessionId ?? ''), userId ?? '');
      });
    if (fault && 'delayMs' in fault) later(fault.delayMs, accept);
    else accept();
  });

  function later(ms: number, run: () => void): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      run();
    }, ms);
    timers.add(timer);
  }

  function sessionOf(id: string): Session {
    const known = sessions.get(id);
    if (known) return known;
    const session: Session = {
      id,
      messages: [],
      clients: new Set(),
      queue: [],
      answers: new Map(),
    };
    sessions.set(id, session);
    return session;
  }

  function join(socket: WebSocket, request: IncomingMessage, id: string, userId: string): void {
    const session = sessionOf(id);
    const client: Client = {
      sessionId: id,
      headers: request.headers,
      url: request.url ?? '',
      received: [],
      socket,
      userId,
      isSilent: false,
      corked: 0,
      get isOpen() {
        return socket.readyState === socket.OPEN;
      },
    };
    connections.push(client);
    session.clients.add(client);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      session.clients.delete(client);
      broadcast(session, { type: 'user.left', userId, connectedUsers: [] });
    });
    socket.on('message', (data) => receive(session, client, JSON.parse(String(data))));
    if (hasInit) send(client, initOf(session));
    broadcast(session, { type: 'user.joined', userId, connectedUsers: [] });
  }

  function initOf({ id, messages, running, queue, clients }: Session): Message {
    const told = messages.map((message) =>
      message.id === running?.turnId ? { ...message, content: '', parts: [] } : message,
    );
    return {
      type: 'init',
      session: { id, status: 'running', ...(release === 'rfc' && { messages: told }) },
      data: {
        runnerConnected: true,
        runnerBusy: running !== undefined,
        promptsQueued: queue.length,
        connectedClients: clients.size,
      },
    };
  }

  function send(client: Client, event: object): void {
    if (client.isSilent || client.socket.readyState !== client.socket.OPEN) return;
    const socket = rawOf(client.socket);
    if (cork > 1 && client.corked++ === 0) {
      socket.cork();
      setImmediate(() => {
        client.corked = 0;
        socket.uncork();
      });
    }
    client.socket.send(JSON.stringify(event));
    if (cork > 1 && client.corked % cork === 0) {
      socket.uncork();
      socket.cork();
    }
  }

  function broadcast(session: Session, event: Message): void {
    for (const client of session.clients) send(client, event);
  }

  function receive(session: Session, client: Client, message: Message): void {
    client.received.push(message);
    if (client.isSilent) return;
    if (message.type === 'ping') send(client, { type: 'pong' });
    else if (message.type === 'abort') abort(session);
    else if (message.type === 'answer') {
      const { questionId, answer } = message;
      session.answers.get(questionId as string)?.(answer);
      session.answers.delete(questionId as string);
      if (dialect === 'snapshot') status(session, { questionAnswered: questionId, answer });
    } else if (message.type === 'prompt') {
      if (isClosingOnPrompt) {
        isClosingOnPrompt = false;
        client.socket.close(1001, 'going away');
      } else ask(session, client, message);
    }
  }

  function status(session: Session, data: object): void {
    broadcast(session, { type: 'status', data });
  }

  function ask(session: Session, from: Client, prompt: Message): void {
    const number = ++turns;
    const turnId = `turn-${number}-${session.id}`;
    const job: Job = { prompt, from, turnId, number, stop: new AbortController() };
    const mustWait = session.running !== undefined;
    if (!mustWait || !keepsQueued) show(session, job);
    if (!mustWait) return void run(session, job);
    if (keepsQueued) {
      for (const { prompt: old } of session.queue.splice(0)) {
        broadcast(session, { type: 'queue.withdrawn', data: { content: old.content } });
      }
      broadcast(session, { type: 'queue.state', data: { pending: { content: prompt.content } } });
    }
    session.queue.push(job);
    const queuePosition = session.queue.length;
    if (hasQueueStatus) status(session, { promptQueued: true, queuePosition });
  }

  function show(session: Session, { prompt, from, number }: Job): void {
    const { content, attachments } = prompt as Message & { content: string };
    const files = (attachments as { mime: string; url: string }[] | undefined)?.map((file) => ({
      type: 'image',
      data: file.url.split(',')[1],
      mimeType: file.mime,
    }));
    const data = {
      id: `prompt-${number}-${session.id}`,
      role: 'user',
      content,
      ...(files && { parts: files }),
      authorId: from.userId,
      ...placeOf(prompt),
    };
    session.messages.push(data);
    if (hasEcho) broadcast(session, { type: 'message', data });
    broadcast(session, { type: 'audit_log', entry: { eventType: 'user.prompt' } });
  }

  async function run(session: Session, job: Job): Promise<void> {
    session.running = job;
    const { turnId, number, prompt, from, stop } = job;
    const text = String(prompt.content);
    const play = createPlay({
      turnId,
      dialect,
      place: placeOf(prompt),
      messages: session.messages,
      tell: (event) => broadcast(session, event),
      misbehave: (step) => misbehave(from, step),
    });
    const script = (options.script ?? defaultScript)(text);
    const { signal } = stop;
    const answer = (id: string) => {
      const given = new Promise((resolve) => session.answers.set(id, resolve));
      return Promise.race([given, aborted(signal)]);
    };
    for await (const step of script({ turnId, number, dialect, text, signal, answer })) {
      if (stop.signal.aborted) break;
      play(step);
      // Nobody hears what comes after these.
      if ('cut' in step || 'close' in step || 'silence' in step) await aborted(signal);
    }
    if (stop.signal.aborted) return;
    play(undefined);
    if (dialect === 'v2') broadcast(session, { type: 'complete' });
    next(session, job);
  }

  /** The turn is over: the next in the queue, or nothing. */
  function next(session: Session, job: Job): void {
    broadcast(session, { type: 'audit_log', entry: { eventType: 'agent.turn_complete' } });
    if (session.running === job) session.running = undefined;
    const queued = session.running ? undefined : session.queue.shift();
    if (queued) {
      if (keepsQueued) show(session, queued);
      const remaining = session.queue.length;
      if (hasQueueStatus) status(session, { promptDequeued: true, remaining });
      void run(session, queued);
    } else if (dialect === 'snapshot') status(session, { runnerBusy: false });
    broadcast(session, { type: 'agentStatus', status: 'idle' });
  }

  function abort(session: Session): void {
    const job = session.running;
    if (options.isDeafToAbort) return;
    if (clearsQueue) session.queue = [];
    broadcast(session, { type: 'agentStatus', status: 'idle' });
    broadcast(session, { type: 'audit_log', entry: { eventType: 'user.abort' } });
    if (!job) return;
    job.stop.abort();
    if (dialect === 'v2') broadcast(session, { type: 'aborted' });
    else if (release === 'rfc') status(session, { runnerBusy: false, aborted: true });
    next(session, job);
    if (release === 'rfc') return;
    later(lateMs, () => {
      if (dialect === 'snapshot') return next(session, job);
      const error = 'The operation was aborted.';
      broadcast(session, { type: 'message.finalize', turnId: null, reason: 'error', error });
      broadcast(session, { type: 'complete' });
    });
  }

  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  return {
    url: `ws://127.0.0.1:${port}`,
    httpUrl: `http://127.0.0.1:${port}`,
    /** All there ever were; `isOpen` tells those that are. */
    connections: connections as readonly Connection[],
    get live(): Connection[] {
      return connections.filter(({ isOpen }) => isOpen);
    },
    /** Everything clients sent, of one kind. */
    received: (type: string) =>
      connections.flatMap((client) => client.received.filter((message) => message.type === type)),
    messages: (sessionId: string) => sessionOf(sessionId).messages,
    /** For the next connections, one each. */
    fault: (...next: ConnectionFault[]) => void faults.push(...next),
    /** Closes the connection that sends the next prompt. */
    closeOnPrompt: () => {
      isClosingOnPrompt = true;
    },
    broadcast: (sessionId: string, event: Message) => broadcast(sessionOf(sessionId), event),
    /** Somebody else's prompt, who is not on any socket. */
    ask: (sessionId: string, content: string) => {
      const nobody = { userId: 'u2', received: [] } as unknown as Client;
      ask(sessionOf(sessionId), nobody, { type: 'prompt', content, ...WEB });
    },
    abort: (sessionId: string) => abort(sessionOf(sessionId)),
    close: async () => {
      for (const timer of timers) clearTimeout(timer);
      for (const socket of sockets) socket.destroy();
      wss.close();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

const WEB = { channelType: 'web', channelId: 'default' };

function placeOf({ channelType, channelId }: Message): object {
  return channelType === undefined ? {} : { channelType, channelId };
}

function pathOf(request: IncomingMessage): URL {
  return new URL(request.url ?? '/', 'http://localhost');
}
