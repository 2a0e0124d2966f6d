/**
 * What is needed of a Redis client, of either of the two that people have: `redis` and `ioredis`,
 * each with its cluster. Neither is a dependency; they fit by their shape.
 */

/** What a client and a cluster of `redis` have in common. */
interface NodeRedis {
  subscribe(
    channel: string,
    listener: (message: string, channel: string) => void,
  ): Promise<unknown>;
  unsubscribe(
    channel: string,
    listener: (message: unknown, channel: unknown) => void,
  ): Promise<unknown>;
  duplicate(): unknown;
  connect(): Promise<unknown>;
  destroy(): unknown;
  readonly isOpen: boolean;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** As much of `redis` as is needed: `createClient()`. */
export interface NodeRedisClient extends NodeRedis {
  sendCommand(args: string[]): Promise<unknown>;
  readonly isReady: boolean;
}

/** The same for a cluster: `createCluster()`. */
export interface NodeRedisCluster extends NodeRedis {
  sendCommand(key: string, isReadonly: boolean, args: string[]): Promise<unknown>;
  readonly masters: unknown;
}

/** As much of `ioredis` as is needed: `new Redis()`, or `new Cluster()`. */
export interface IoRedisClient {
  call(command: string, ...args: string[]): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  duplicate(override?: object): unknown;
  disconnect(): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
  readonly status: string;
  readonly isCluster: boolean;
}

export type RedisClient = NodeRedisClient | NodeRedisCluster | IoRedisClient;

/** One connection, whichever client it is. Commands of one tick go out together. */
export interface Link {
  readonly isReady: boolean;
  /** What is wrong with it, if something is: for whoever has to mend it. */
  readonly trouble: string;
  /** A step may only touch what is on one server. */
  readonly isCluster: boolean;
  /** `key` says where in a cluster it belongs. */
  send(key: string, args: string[]): Promise<unknown>;
  /** Also after every time the connection was lost. Gives what takes it back. */
  onReady(run: () => void): () => void;
}

/** A connection of our own that only listens. */
export interface Subscriber {
  /** Resolves when nothing that is said from now on is missed. */
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Listens again after a drop: what was said meanwhile was missed. */
  onReady(run: () => void): void;
  /** It was lost, and does not connect again: another one is needed. */
  onOver(run: () => void): void;
  close(): void;
}

export type OnMessage = (channel: string, message: string) => void;

/** When a connection is there (again); in a cluster, to any of its nodes. */
const READY_EVENTS = ['ready', 'node-ready', '+node', '-node'];

export function createLink(client: RedisClient): Link {
  ignoreErrors(client);
  return {
    get trouble() {
      if (!isIoRedis(client) && !client.isOpen) {
        return 'the client is not connected: await client.connect()';
      }
      return this.isReady ? 'Redis does not answer in time' : (lastErrors.get(client) ?? NOT_YET);
    },
    get isReady() {
      // One that waits connects when it is first told something.
      if (isIoRedis(client)) return client.status === 'ready' || client.status === 'wait';
      return isNodeCluster(client) ? client.isOpen : client.isReady;
    },
    isCluster: isIoRedis(client) ? client.isCluster : isNodeCluster(client),
    send(key, args) {
      if (isIoRedis(client)) return client.call(...(args as [string, ...string[]]));
      if (isNodeCluster(client)) return client.sendCommand(key, false, args);
      return client.sendCommand(args);
    },
    onReady(run) {
      onReady(client, run);
      return () => {
        for (const event of READY_EVENTS) client.off(event, run);
      };
    },
  };
}

export function createSubscriber(client: RedisClient, onMessage: OnMessage): Subscriber {
  if (isIoRedis(client)) return createIoRedisSubscriber(client, onMessage);
  const own = client.duplicate() as NodeRedisClient | NodeRedisCluster;
  ignoreErrors(own);
  const connected = own.connect();
  connected.catch(() => undefined);
  const listener = (message: unknown, channel: unknown) =>
    onMessage(String(channel), String(message));
  return {
    async subscribe(channel) {
      await connected;
      await own.subscribe(channel, listener);
    },
    async unsubscribe(channel) {
      await connected;
      // By its listener: else one that subscribes again meanwhile would hear nothing.
      await own.unsubscribe(channel, listener);
    },
    onReady: (run) => onReady(own, run),
    onOver: (run) => onOver(own, () => !own.isOpen, run),
    close() {
      try {
        own.destroy();
      } catch {
        // It was closed already.
      }
    },
  };
}

/**
 * By itself it would subscribe again after a drop and let whoever fails at it go unheard, which ends
 * the process; so that is done here. A cluster's does it well.
 */
function createIoRedisSubscriber(client: IoRedisClient, onMessage: OnMessage): Subscriber {
  const { isCluster } = client;
  const own = (
    isCluster ? client.duplicate() : client.duplicate({ autoResubscribe: false })
  ) as IoRedisClient;
  const channels = new Set<string>();
  ignoreErrors(own);
  own.on('message', (channel, message) => onMessage(String(channel), String(message)));
  own.on('ready', () => {
    if (isCluster || channels.size === 0) return;
    // Lost again: the next time.
    own.subscribe(...channels).catch(() => undefined);
  });
  return {
    subscribe(channel) {
      channels.add(channel);
      return own.subscribe(channel);
    },
    unsubscribe(channel) {
      channels.delete(channel);
      return own.unsubscribe(channel);
    },
    onReady: (run) => onReady(own, run),
    onOver: (run) => onOver(own, () => own.status === 'end', run),
    close: () => own.disconnect(),
  };
}

function onReady(client: RedisClient, run: () => void): void {
  for (const event of READY_EVENTS) client.on(event, run);
}

/** Of `redis` one is told that there is no other try only beside an error, by older ones not at all. */
function onOver(client: RedisClient, isOver: () => boolean, run: () => void): void {
  const check = () => {
    if (isOver()) run();
  };
  for (const event of ['end', 'terminated', 'error']) client.on(event, check);
}

/** What was last wrong with a client's connection. */
const lastErrors = new WeakMap<RedisClient, string>();
const NOT_YET = 'there is no connection yet';
const isHeard = new WeakSet<RedisClient>();

/**
 * Both clients throw what goes wrong with a connection at whoever does not listen. They connect
 * again by themselves, and what failed is told to whoever asked for it.
 */
function ignoreErrors(client: RedisClient): void {
  if (isHeard.has(client)) return;
  isHeard.add(client);
  client.on('error', (error) => {
    const { code, message, address, port } = Object(error) as Record<string, unknown>;
    const where = address ? ` ${address}:${port}` : '';
    lastErrors.set(client, `there is no connection: ${code ?? message}${where}`);
  });
}

function isIoRedis(client: RedisClient): client is IoRedisClient {
  return 'call' in client && typeof client.call === 'function';
}

function isNodeCluster(client: RedisClient): client is NodeRedisCluster {
  return 'masters' in client;
}

export function checkClient(client: unknown): void {
  const { sendCommand, call, duplicate } = Object(client) as Record<string, unknown>;
  const isOne = typeof (call ?? sendCommand) === 'function' && typeof duplicate === 'function';
  if (!isOne) {
    throw new TypeError(
      'redisTurnLog needs a client: createClient() of redis, or new Redis() of ioredis.',
    );
  }
  const { options } = client as { options?: { keyPrefix?: unknown } };
  if (typeof call !== 'function' && options?.keyPrefix) {
    // It is put before the keys of its own commands only: two that are to be apart would share turns.
    throw new TypeError(
      'redisTurnLog: keyPrefix of the redis client does not reach its keys. Say { prefix } instead.',
    );
  }
}
