/**
 * What is needed of a Redis client, of either of the two that people have: `redis` and `ioredis`,
 * each with its cluster. Neither is a dependency; they fit by their shape.
 */

/** As much of `redis` as is needed: `createClient()`. */
export interface NodeRedisClient {
  sendCommand(args: string[]): Promise<unknown>;
  subscribe(
    channel: string,
    listener: (message: string, channel: string) => void,
  ): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  duplicate(): unknown;
  connect(): Promise<unknown>;
  destroy(): unknown;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  readonly isReady: boolean;
}

/** The same for a cluster: `createCluster()`. */
export interface NodeRedisCluster {
  sendCommand(key: string, isReadonly: boolean, args: string[]): Promise<unknown>;
  subscribe(
    channel: string,
    listener: (message: string, channel: string) => void,
  ): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  duplicate(): unknown;
  connect(): Promise<unknown>;
  destroy(): unknown;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  readonly isOpen: boolean;
  readonly masters: unknown;
}

/** As much of `ioredis` as is needed: `new Redis()`, or `new Cluster()`. */
export interface IoRedisClient {
  call(command: string, ...args: string[]): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  duplicate(): unknown;
  disconnect(): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  readonly status: string;
}

export type RedisClient = NodeRedisClient | NodeRedisCluster | IoRedisClient;

/** One connection, whichever client it is. Commands of one tick go out together. */
export interface Link {
  readonly isReady: boolean;
  /** `key` says where in a cluster it belongs. */
  send(key: string, args: string[]): Promise<unknown>;
  /** Also after every time the connection was lost. */
  onReady(run: () => void): void;
}

/** A connection of our own that only listens. */
export interface Subscriber {
  /** Resolves when nothing that is said from now on is missed. */
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Listens again after a drop: what was said meanwhile was missed. */
  onReady(run: () => void): void;
  close(): void;
}

export type OnMessage = (channel: string, message: string) => void;

export function createLink(client: RedisClient): Link {
  checkClient(client);
  ignoreErrors(client);
  return {
    get isReady() {
      if (isIoRedis(client)) return client.status === 'ready';
      return isNodeCluster(client) ? client.isOpen : client.isReady;
    },
    send(key, args) {
      if (isIoRedis(client)) return client.call(...(args as [string, ...string[]]));
      if (isNodeCluster(client)) return client.sendCommand(key, false, args);
      return client.sendCommand(args);
    },
    onReady: (run) => void client.on('ready', run),
  };
}

export function createSubscriber(client: RedisClient, onMessage: OnMessage): Subscriber {
  const own = client.duplicate() as RedisClient;
  ignoreErrors(own);
  if (isIoRedis(own)) {
    own.on('message', (channel, message) => onMessage(String(channel), String(message)));
    return {
      subscribe: (channel) => own.subscribe(channel),
      unsubscribe: (channel) => own.unsubscribe(channel),
      onReady: (run) => void own.on('ready', run),
      close: () => own.disconnect(),
    };
  }
  const connected = own.connect();
  connected.catch(() => undefined);
  const listener = (message: string, channel: string) => onMessage(channel, message);
  return {
    async subscribe(channel) {
      await connected;
      await own.subscribe(channel, listener);
    },
    async unsubscribe(channel) {
      await connected;
      await own.unsubscribe(channel);
    },
    onReady: (run) => void own.on('ready', run),
    // Before it is connected there is nothing to close yet.
    close: () => void connected.then(() => own.destroy()).catch(() => undefined),
  };
}

/**
 * Both clients throw what goes wrong with a connection at whoever does not listen. They connect
 * again by themselves, and what failed is told to whoever asked for it.
 */
function ignoreErrors(client: RedisClient): void {
  client.on('error', () => undefined);
}

function isIoRedis(client: RedisClient): client is IoRedisClient {
  return 'call' in client && typeof client.call === 'function';
}

function isNodeCluster(client: RedisClient): client is NodeRedisCluster {
  return 'masters' in client;
}

function checkClient(client: unknown): void {
  const { sendCommand, call, duplicate } = Object(client) as Record<string, unknown>;
  const isOne = typeof (call ?? sendCommand) === 'function' && typeof duplicate === 'function';
  if (!isOne) {
    throw new TypeError(
      'redisTurnLog needs a client: createClient() of redis, or new Redis() of ioredis.',
    );
  }
}
