/**
 * The two that are compared, behind one face: a turn that is written through one instance and read
 * through another, each with connections of its own, as two gateways have them.
 */
import { createClient } from 'redis';
import { createResumableStreamContext } from 'resumable-stream';
import { encodeSse } from 'sabir';
import { redisTurnLog } from 'sabir/redis';

/** A delta as the side is given it: made beforehand, since the making is not what is compared. */
type Unit = string | TextDelta;
type TextDelta = { type: 'text-delta'; id: string; delta: string };

export type Turn = {
  /** Says them in one tick, each as a chunk of its own. */
  say(units: readonly Unit[]): void;
  /** Resolves when all that was said has been read, and the end of it. */
  end(): Promise<void>;
};

export type Side = {
  unitOf(delta: string): Unit;
  /** A turn that is being read: what comes is told, chunk by chunk. */
  open(onDelta: () => void): Promise<Turn>;
  /** How many commands its clients have sent so far to run scripts or to do without them. */
  sent(): number | undefined;
};

const PART = 'text-1';

function chunkOf(delta: string): TextDelta {
  return { type: 'text-delta', id: PART, delta };
}

let due: (() => void)[] = [];

/** As the gateway does: all that have something to write in this tick begin to write at once. */
function afterThisTick(run: () => void): void {
  if (due.push(run) > 1) return;
  setImmediate(() => {
    const all = due;
    due = [];
    for (const one of all) one();
  });
}

async function connect(url: string) {
  const client = createClient({ url });
  client.on('error', (error) => {
    throw error;
  });
  await client.connect();
  return client;
}

/** A script's own commands are in Redis's count as well: those that were sent are counted here. */
function countSent(client: Awaited<ReturnType<typeof connect>>, onSend: () => void): void {
  const send = client.sendCommand.bind(client) as typeof client.sendCommand;
  client.sendCommand = ((...args: Parameters<typeof send>) => {
    onSend();
    return send(...args);
  }) as typeof client.sendCommand;
}

export async function openSabir(url: string): Promise<Side> {
  let sent = 0;
  const clients = await Promise.all([1, 2].map(() => connect(url)));
  for (const client of clients) countSent(client, () => sent++);
  const [written, read] = clients.map((client) =>
    redisTurnLog({ client, prefix: 'bench', maxTurnBytes: Number.POSITIVE_INFINITY }),
  ) as [ReturnType<typeof redisTurnLog>, ReturnType<typeof redisTurnLog>];
  let turns = 0;

  async function open(onDelta: () => void): Promise<Turn> {
    const id = `${++turns}`;
    const begun = await written.begin({
      sessionId: 's',
      chatId: id,
      requestId: id,
      messageId: id,
    });
    if (!('writer' in begun)) throw new Error('the turn was there already');
    const { writer } = begun;
    const reading = readAll(writer.turnId, onDelta);
    let pending: TextDelta[] = [];
    let isBusy = false;
    let isEnding = false;
    const stored = Promise.withResolvers<void>();

    /** As a turn of the gateway does: what there is goes in one append, one after the other. */
    async function flush(): Promise<void> {
      while (pending.length > 0) {
        const chunks = pending;
        pending = [];
        await writer.append(chunks);
      }
      isBusy = false;
      if (isEnding) stored.resolve();
    }

    function schedule(): void {
      if (isBusy) return;
      isBusy = true;
      afterThisTick(() => void flush().catch(stored.reject));
    }

    await writer.append([{ type: 'text-start', id: PART }]);
    await reading.started;
    return {
      say(units) {
        for (const unit of units) pending.push(unit as TextDelta);
        schedule();
      },
      async end() {
        isEnding = true;
        schedule();
        await stored.promise;
        await writer.close({ status: 'finished' });
        await reading.ended;
      },
    };
  }

  /** Started when the first chunk has come: it listens by then. */
  function readAll(turnId: string, onDelta: () => void) {
    const started = Promise.withResolvers<void>();
    const ended = (async () => {
      for await (const batch of read.read(turnId, 0, new AbortController().signal)) {
        started.resolve();
        for (const { chunk } of batch) if (chunk.type === 'text-delta') onDelta();
      }
    })();
    return { started: started.promise, ended };
  }

  return {
    unitOf: chunkOf,
    open,
    sent: () => sent,
  };
}

/** `resumable-stream` as its documentation has it, with `redis`. */
export async function openPeer(url: string): Promise<Side> {
  const clients = await Promise.all([1, 2, 3, 4].map(() => connect(url)));
  const contextOf = (at: number) =>
    createResumableStreamContext({
      waitUntil: null,
      publisher: clients[at] as never,
      subscriber: clients[at + 1] as never,
    });
  const written = contextOf(0);
  const read = contextOf(2);
  let streams = 0;

  async function open(onDelta: () => void): Promise<Turn> {
    const id = `${process.pid}-${++streams}`;
    let source: ReadableStreamDefaultController<string> | undefined;
    const makeStream = () =>
      new ReadableStream<string>({
        start(controller) {
          source = controller;
        },
      });
    const own = await written.createNewResumableStream(id, makeStream);
    const stream = await read.resumeExistingStream(id);
    if (!stream || !own) throw new Error('the stream is not there');
    const ended = (async () => {
      // The first message is what was said before: nothing.
      for await (const message of stream) if (message) onDelta();
    })();
    return {
      say(units) {
        for (const unit of units) source?.enqueue(unit as string);
      },
      async end() {
        source?.close();
        await ended;
      },
    };
  }

  return {
    unitOf: (delta) => encodeSse(chunkOf(delta)),
    open,
    // It has no scripts: Redis's count is that of its clients.
    sent: () => undefined,
  };
}
