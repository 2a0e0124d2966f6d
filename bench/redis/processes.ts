/** Servers in processes of their own, and clients that watch a turn there. */
import { type ChildProcess, fork, type Serializable } from 'node:child_process';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { createSseDecoder } from 'sabir';

export type Server = { child: ChildProcess; port: number };

/** Resolves with the first thing that it tells. */
async function startProcess(name: string, ...args: string[]) {
  const file = fileURLToPath(new URL(`./${name}.ts`, import.meta.url));
  const child = fork(file, args, {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const died = once(child, 'exit').then(() => {
    throw new Error(`${name} could not start`);
  });
  const [told] = await Promise.race([once(child, 'message'), died]);
  died.catch(() => undefined);
  return { child, told };
}

/** One of those that are compared: told something, it measures and tells what it found. */
export async function startSide<Told extends Serializable, Found>(name: string, ...args: string[]) {
  const { child } = await startProcess(name, ...args);
  return {
    async round(told: Told): Promise<Found> {
      const answer = once(child, 'message');
      child.send(told);
      return (await answer)[0];
    },
    stop: () => child.kill(),
  };
}

export async function startServer(name: string, ...args: string[]): Promise<Server> {
  const { child, told } = await startProcess(name, ...args);
  return { child, port: told.port };
}

export async function memoryOf({ child }: Server): Promise<NodeJS.MemoryUsage> {
  const answer = once(child, 'message');
  child.send('memory');
  return (await answer)[0];
}

export type Watching = {
  /** Of the body, so far. */
  bytes: number;
  /** How many deltas came, and their words. */
  deltas: number;
  text: string;
  /** Resolves as soon as anything has come. */
  begun: Promise<unknown>;
  /** Resolves when that much text has come: with when it had. */
  until(length: number): Promise<number>;
  ended: Promise<unknown>;
  leave(): void;
};

/** Reads as a client does: every frame found, every chunk parsed. */
export function watch(port: number, path: string, body?: unknown): Watching {
  const begun = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<number>();
  const ended = Promise.withResolvers<void>();
  let wanted = Number.POSITIVE_INFINITY;
  let sent: ClientRequest | undefined;
  const watching: Watching = {
    bytes: 0,
    deltas: 0,
    text: '',
    begun: begun.promise,
    ended: ended.promise,
    until(length) {
      wanted = length;
      check();
      return reached.promise;
    },
    leave: () => void sent?.destroy(),
  };
  const check = () => {
    if (watching.text.length >= wanted) reached.resolve(performance.now());
  };
  const decoder = createSseDecoder({
    frame({ data }) {
      if (data === '[DONE]') return;
      const { type, delta } = JSON.parse(data) as { type: string; delta?: string };
      if (type !== 'text-delta') return;
      watching.deltas++;
      watching.text += delta;
    },
  });
  const fail = (error: unknown) => {
    for (const { reject } of [begun, reached, ended]) reject(error);
  };
  for (const { promise } of [begun, reached, ended]) promise.catch(() => undefined);
  const onResponse = (response: IncomingMessage) => {
    if (response.statusCode !== 200) fail(new Error(`${path}: ${response.statusCode}`));
    response.on('data', (bytes: Buffer) => {
      watching.bytes += bytes.length;
      decoder.push(bytes);
      begun.resolve();
      check();
    });
    response.on('end', ended.resolve);
    response.on('error', fail);
  };
  const method = body === undefined ? 'GET' : 'POST';
  const headers = { 'content-type': 'application/json', 'x-sabir-detach': '1' };
  const options = { host: '127.0.0.1', port, path, method, headers, agent: false as const };
  sent = request(options, onResponse);
  sent.on('error', fail);
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  return watching;
}

/** Begins a turn in a chat of its own. */
export function ask(port: number, chat: string, text: string): Watching {
  return watch(port, '/api/sessions/s/chat', {
    id: chat,
    messages: [{ id: `${chat}-m`, role: 'user', parts: [{ type: 'text', text }] }],
    trigger: 'submit-message',
  });
}

export function resume(port: number, chat: string): Watching {
  return watch(port, `/api/sessions/s/chat/${chat}/stream`);
}
