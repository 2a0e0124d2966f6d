/** Bytes of SSE → chunks, and nothing done with them. */
import { DefaultChatTransport as Transport6 } from 'ai-v6';
import { DefaultChatTransport as Transport7 } from 'ai-v7';
import { type Chunk, createSseDecoder } from 'sabir';
import { ContractChatTransport, SabirChatTransport } from 'sabir/client';
import { decodeContract } from 'sabir/contract';
import { atLeast, type Bar, interleaveAsync, median, ratio, sized } from '../report.ts';
import { agentTurn, recordedTurns } from './turns.ts';
import {
  contractFrames,
  type Fetch,
  fetchOf,
  gatewayFrames,
  inReadsOf,
  type Reads,
} from './wire.ts';

const ROUNDS = 5;
const CHUNKS = sized(8_000, 200);
/** The recorded turns are short: together they are read this many times. */
const REPEATS = sized(2, 1);
const READ_BYTES = 16_384;

const api = 'http://localhost/api/chat';

/** What there is to decode: turns, each with its reads on either wire. */
type Load = {
  /** What one network read brings, or where it is from. */
  label: string;
  chunks: number;
  /** Fewer: the start of a text needs none of its own. */
  events: number;
  ai: Reads[];
  contract: Reads[];
};

/** Our decoder as `ChatStream` and every handler uses it: bytes pushed in, values out. */
function pushAi(turns: Reads[]): number {
  let count = 0;
  for (const reads of turns) {
    const decoder = createSseDecoder({
      frame({ data }) {
        if (data === '[DONE]') return;
        const chunk: Chunk = JSON.parse(data);
        if (chunk.type) count++;
      },
    });
    for (const bytes of reads) decoder.push(bytes);
  }
  return count;
}

/** The same on the contract, up to the events. */
function pushEvents(turns: Reads[]): number {
  let count = 0;
  for (const reads of turns) {
    const decoder = createSseDecoder({
      frame({ event: type, data }) {
        const event = { type, data: JSON.parse(data) };
        if (event.type && event.data) count++;
      },
    });
    for (const bytes of reads) decoder.push(bytes);
  }
  return count;
}

/** And to chunks that any client of the AI SDK takes. */
function pushContract(turns: Reads[]): number {
  let count = 0;
  for (const reads of turns) {
    const decode = decodeContract();
    const decoder = createSseDecoder({
      frame({ event: type = '', data }) {
        count += decode({ type, data: JSON.parse(data) }).length;
      },
    });
    for (const bytes of reads) decoder.push(bytes);
  }
  return count;
}

type Sending = {
  sendMessages(options: {
    trigger: 'submit-message';
    chatId: string;
    messageId: undefined;
    messages: [];
    abortSignal: undefined;
  }): Promise<ReadableStream<unknown>>;
};

async function readAll(turns: Reads[], create: (fetch: Fetch) => Sending): Promise<number> {
  let count = 0;
  for (const reads of turns) {
    const stream = await create(fetchOf(reads)).sendMessages({
      trigger: 'submit-message',
      chatId: 'c1',
      messageId: undefined,
      messages: [],
      abortSignal: undefined,
    });
    const reader = stream.getReader();
    while (!(await reader.read()).done) count++;
  }
  return count;
}

async function measure({ label, chunks, events, ai, contract }: Load) {
  /** Of what came out, a second. Whoever drops some is not fast. */
  const rate = (least: number, run: () => number | Promise<number>) => async () => {
    const begin = performance.now();
    const count = await run();
    const seconds = (performance.now() - begin) / 1000;
    if (count < least) throw new Error(`${label}: ${count} of ${least} came`);
    return count / seconds;
  };
  const rates = await interleaveAsync(ROUNDS, {
    ai7: rate(chunks, () => readAll(ai, (fetch) => new Transport7({ api, fetch }))),
    ai6: rate(chunks, () => readAll(ai, (fetch) => new Transport6({ api, fetch }))),
    push: rate(chunks, () => pushAi(ai)),
    pushEvents: rate(events, () => pushEvents(contract)),
    pushContract: rate(chunks, () => pushContract(contract)),
    stream: rate(chunks, () => readAll(ai, (fetch) => new SabirChatTransport({ api, fetch }))),
    contractStream: rate(chunks, () =>
      readAll(contract, (fetch) => new ContractChatTransport({ api, fetch })),
    ),
  });
  const told = (values: number[]) =>
    `${Math.round(median(values) / 1000)} k/s, ${ratio(values, rates.ai7).toFixed(1)} × ai 7`;
  const figures = {
    [`decode, ${label}: ai 7 transport`]: `${Math.round(median(rates.ai7) / 1000)} k chunks/s`,
    [`decode, ${label}: ai 6 transport`]: told(rates.ai6),
    [`decode, ${label}: push`]: told(rates.push),
    [`decode, ${label}: push, events`]: told(rates.pushEvents),
    [`decode, ${label}: push, contract`]: told(rates.pushContract),
    [`decode, ${label}: SabirChatTransport`]: told(rates.stream),
    [`decode, ${label}: ContractChatTransport`]: told(rates.contractStream),
  };
  const bars: Bar[] = [
    atLeast(`decode × 7, ${label}: push`, ratio(rates.push, rates.ai7), 10),
    atLeast(`decode × 7, ${label}: push, events`, ratio(rates.pushEvents, rates.ai7), 10),
    atLeast(`decode × 7, ${label}: stream`, ratio(rates.stream, rates.ai7), 6),
    atLeast(`decode × 7, ${label}: contract stream`, ratio(rates.contractStream, rates.ai7), 6),
  ];
  return { figures, bars };
}

export async function measureDecode() {
  const long = agentTurn(CHUNKS);
  const [ai, contract] = [gatewayFrames(long), contractFrames(long)];
  const recorded = Array.from({ length: REPEATS }, recordedTurns).flat();
  const recordedContract = recorded.map(contractFrames);
  const size = { chunks: long.length, events: contract.length };
  const loads: Load[] = [
    { label: '1 frame', ...size, ai: [ai], contract: [contract] },
    {
      label: '16 KB',
      ...size,
      ai: [inReadsOf(READ_BYTES, ai)],
      contract: [inReadsOf(READ_BYTES, contract)],
    },
    {
      label: 'recorded',
      chunks: recorded.flat().length,
      events: recordedContract.flat().length,
      ai: recorded.map(gatewayFrames),
      contract: recordedContract,
    },
  ];
  const figures: Record<string, string> = {};
  const bars: Bar[] = [];
  for (const load of loads) {
    const found = await measure(load);
    Object.assign(figures, found.figures);
    // The others tell what the size of the reads does.
    if (load.label === 'recorded') bars.push(...found.bars);
  }
  return { figures, bars };
}
