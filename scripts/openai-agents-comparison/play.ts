/** Plays a scenario: a real run, one of the helpers, and the AI SDK's own client at the other end. */
import type { UIMessage } from '../../packages/sabir/src/core/message.ts';
import { scriptedModel } from '../../packages/sabir/test/openai-agents/scripted-model.ts';
import {
  type ClientResult,
  createClient,
  httpTransport,
} from '../../packages/sabir/test/real-clients.ts';
import { STREAMS, type StreamName } from './compared-streams.ts';
import { type Scenario, sdk } from './scenarios.ts';

export type Loose = { readonly [field: string]: unknown };
export type SaidChunk = Loose & { readonly type: string };

/** What a helper made of one run. */
type Stream = {
  chunks: SaidChunk[];
  /** What it threw instead of going on: the response breaks off there. */
  thrown?: Error;
};

/** One request of the client, and what the client had when it was over. */
export type Exchange = Stream & { client: ClientResult };

/** Where an approval was asked for, the last exchange is the one after the answer. */
export type Played = { first: Exchange; last: Exchange };

type Run = Awaited<ReturnType<typeof begin>>;
type Input = Parameters<typeof sdk.run>[1];

const CLIENT = 'ai@7';

export async function play(scenario: Scenario, helper: StreamName): Promise<Played> {
  const model = scriptedModel(sdk, scenario.script);
  const agent = scenario.agent(scenario.onModel?.(model) ?? model);
  const streams: Stream[] = [];
  let latest: Run | undefined;

  /** The server: begins a run; what is sent after that is an answer to it. */
  async function respond(_url: string, { body }: RequestInit): Promise<Response> {
    const { messages } = JSON.parse(body as string) as { messages: UIMessage[] };
    const answered = latest && messages.at(-1);
    if (latest && answered) decide(latest, answered);
    latest = await begin(agent, latest?.state ?? 'Go.', scenario.runOptions);
    const stream: Stream = { chunks: [] };
    streams.push(stream);
    return new Response(toSse(STREAMS[helper](latest, answered), stream), {
      headers: { 'content-type': 'text/event-stream' },
    });
  }

  const { chat, result } = await createClient(CLIENT, await httpTransport(CLIENT, respond));
  await chat.sendMessage({ text: 'Go.' });
  const first = { ...lastOf(streams), client: result() };
  const { answer } = scenario;
  const asked = approvalOf(first.client.message);
  if (!answer || !asked) return { first, last: first };
  const { addToolApprovalResponse } = chat as unknown as ApprovingChat;
  await addToolApprovalResponse({ id: asked.id, ...answer });
  // Without a message it sends the one that was answered, and can be waited for.
  await chat.sendMessage();
  return { first, last: { ...lastOf(streams), client: result() } };
}

interface ApprovingChat {
  addToolApprovalResponse(answer: object): Promise<void>;
}

function lastOf(streams: Stream[]): Stream {
  const stream = streams.at(-1);
  if (!stream) throw new Error('The client sent no request.');
  return stream;
}

function begin(agent: Parameters<typeof sdk.run>[0], input: Input, options: object = {}) {
  return sdk.run(agent, input, { ...options, stream: true });
}

/** Tells the run what the client answered. */
function decide({ state, interruptions }: Run, message: UIMessage): void {
  const { approved, reason } = approvalOf(message) ?? {};
  for (const item of interruptions) {
    if (approved === true) state.approve(item);
    else state.reject(item, typeof reason === 'string' ? { message: reason } : {});
  }
}

function approvalOf(message: UIMessage | undefined): Loose | undefined {
  const parts = (message?.parts ?? []) as readonly Loose[];
  return parts.find(({ approval }) => approval !== undefined)?.approval as Loose | undefined;
}

/** The stream as a server sends it, and a record of it. */
function toSse(source: ReadableStream<unknown>, record: Stream): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          controller.close();
          return;
        }
        record.chunks.push(value as SaidChunk);
        controller.enqueue(encoder.encode(`data: ${JSON.stringify(value)}\n\n`));
      } catch (error) {
        record.thrown = error as Error;
        controller.error(error);
      }
    },
  });
}
