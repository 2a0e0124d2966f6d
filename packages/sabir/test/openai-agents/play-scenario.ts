import type { Chunk } from '../../src/core/chunks.ts';
import type { Decision } from '../../src/core/decision.ts';
import { foldChunks } from '../../src/core/fold.ts';
import type { UIMessage } from '../../src/core/message.ts';
import type { OpenAIAgentsOptions, RunItem } from '../../src/sources/openai-agents/events.ts';
import { type StreamedRun, toChunks } from '../../src/sources/openai-agents/to-chunks.ts';
import type { Scenario } from './scenario-tools.ts';
import { scriptedModel } from './scripted-model.ts';
import type { Sdk } from './sdks.ts';

type Answer = Decision | 'expired';

/** A run of the SDK that was interrupted, as far as it is looked at. */
type State = {
  getInterruptions(): RunItem[];
  approve(item: RunItem): void;
  reject(item: RunItem, options?: object): void;
};

const EXPIRED = 'Nobody answered in time.';

/** Streamed runs of the scenario's agent, from its beginning or from a state of it. */
export function createRuns(sdk: Sdk, scenario: Scenario) {
  const agent = scenario.agent(sdk, scriptedModel(sdk, scenario.script));
  const { runOptions } = scenario;
  return {
    agent,
    start: (state?: unknown, more?: object) =>
      sdk.run(agent, (state ?? 'Hi') as string, { ...runOptions, ...more, stream: true }),
  };
}

/** What a person says to the calls that wait, told to the run and given back. */
export function decide(state: unknown, answers: Answer[]) {
  return (state as State).getInterruptions().map((item) => {
    const answer = answers.shift() ?? { approved: true };
    tell(state as State, item, answer);
    return { item, answer };
  });
}

function tell(state: State, item: RunItem, answer: Answer): void {
  if (answer === 'expired') state.reject(item, { message: EXPIRED });
  else if (answer.approved) state.approve(item);
  else state.reject(item, answer.reason === undefined ? {} : { message: answer.reason });
}

export async function collect<T>(stream: ReadableStream<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

/** One stream of chunks, and the message that it goes on with. */
type Played = { chunks: Chunk[]; before: UIMessage | undefined };

/**
 * The scenario through `toChunks`, live: each run is a stream of its own, which goes on with the
 * message as a client has it that wrote the answers into it.
 */
export async function playLive(sdk: Sdk, scenario: Scenario, more: OpenAIAgentsOptions = {}) {
  const { start } = createRuns(sdk, scenario);
  const answers = [...(scenario.answers ?? [])];
  const streams: Played[] = [];
  let message: UIMessage | undefined;
  let state: unknown;
  for (;;) {
    const run = await start(state);
    const options = { messageId: 'm', ...scenario.options, ...more, ...(message && { message }) };
    const chunks = (await collect(toChunks(run as StreamedRun, options as object))) as Chunk[];
    streams.push({ chunks, before: message });
    message = foldChunks(chunks, message);
    if ((message.metadata as { outcome?: string }).outcome !== 'paused') break;
    state = run.state;
    for (const { item, answer } of decide(state, answers))
      message = withAnswer(message, item, answer);
  }
  return { streams, message };
}

/** The message after somebody answered in it: on the call where it asks there, else in the question. */
function withAnswer(message: UIMessage, { rawItem }: RunItem, given: Answer): UIMessage {
  const { callId, id } = (rawItem ?? {}) as { callId?: string; id?: string };
  const answer = given === 'expired' ? { approved: false, reason: EXPIRED } : given;
  const parts = (message.parts as Array<{ type: string } & Record<string, unknown>>).map((part) => {
    const data = part.data as { toolCallId?: string } | undefined;
    if (part.state === 'approval-requested' && part.toolCallId === (callId ?? id)) {
      const approval = { ...(part.approval as object), ...answer };
      return { ...part, state: 'approval-responded', approval };
    }
    const isAsked = part.type === 'data-question' && data?.toolCallId === (callId ?? id);
    if (!isAsked || message.parts.some((one) => 'approval' in one)) return part;
    return { ...part, data: { ...data, status: 'answered', answer } };
  });
  return { ...message, parts: parts as UIMessage['parts'] };
}
