import type { Chunk } from '../../core/chunks.ts';
import { MODEL_TIMEOUT, SabirError, toShownText } from '../../core/errors.ts';
import type { FileUrls } from '../../core/file-urls.ts';
import { toJsonSafe } from '../../core/json.ts';
import { isObject } from '../../core/loose.ts';
import type { MessageMetadata, Usage } from '../../core/outcome.ts';
import { toSteeringChunk } from '../../core/steering.ts';
import { readUntilAborted } from '../../core/until-aborted.ts';
import type { Agent, AgentPrompt } from '../../turns/agent.ts';
import { approveCalls, type ClientOutput, type Settled } from './approve-calls.ts';
import { toConversation } from './history.ts';
import {
  createSdkTurnSteering,
  type SdkSteering,
  type SdkTurnSteering,
  withSteering,
} from './sdk-steering.ts';

/** A language model of AI SDK 5, 6 or 7: a provider's, or its name at the gateway. */
export type AiSdkModel =
  | string
  | {
      readonly specificationVersion: string;
      readonly provider: string;
      readonly modelId: string;
      doStream(options: never): PromiseLike<object>;
    };

/** An agent of the AI SDK: `Experimental_Agent` of 5, `ToolLoopAgent` of 6 and 7, and their like. */
export type AiSdkAgent = {
  readonly tools?: object | undefined;
  stream(options: never): object;
};

/** As much of the module `ai` as is used here. */
export type AiSdk = {
  streamText(options: never): object;
  convertToModelMessages(messages: never, options?: never): unknown;
  /** Since 7. */
  experimental_createSteering?(): object;
};

type CommonOptions = {
  /** Default: `ai-sdk`. */
  name?: string;
  /** Anything else that `streamText`, or the agent's `stream`, is to be given. */
  settings?: Record<string, unknown>;
  /** The module to use. Default: the `ai` that is installed. */
  ai?: AiSdk;
  /**
   * Which addresses of attached files the SDK or its provider may fetch.
   *
   * @default none: files come whole, as `data:`
   */
  fileUrls?: FileUrls;
  /**
   * Which tools without `execute` a client runs. A call of another one ends the turn, as in the AI SDK: `[]` for tools that only
   * shape the model's answer.
   *
   * @default all of them
   */
  clientTools?: readonly string[];
  /** What people are told when the model fails. Default: the provider's own message. */
  errorText?: (error: unknown) => string;
};

export type AiSdkModelOptions = CommonOptions & {
  agent?: never;
  model: AiSdkModel;
  tools?: Readonly<Record<string, object>>;
  /** The system prompt. */
  instructions?: string;
  /** How often the model may be called for one prompt. Default: 20. */
  maxSteps?: number;
  /** The models that a prompt can name. Without it the name in a prompt is ignored. */
  models?: Readonly<Record<string, AiSdkModel>> | ((name: string) => AiSdkModel | undefined);
};

/** An agent has its own model and tools. */
export type AiSdkAgentOptions = CommonOptions & { agent: AiSdkAgent } & {
  [Option in 'model' | 'models' | 'tools' | 'instructions' | 'maxSteps']?: never;
};

/** A part of the SDK's own stream, as far as it is looked at. */
type StreamPart = {
  type: string;
  error?: unknown;
  usage?: unknown;
};
type StreamResult = {
  toUIMessageStream(options: {
    sendSources: boolean;
    onError(error: unknown): string;
    messageMetadata(about: { part: StreamPart }): MessageMetadata | undefined;
  }): ReadableStream<Chunk>;
  /** Since 7; before, `response` has the messages of all steps. */
  responseMessages?: PromiseLike<unknown[]>;
  response: PromiseLike<{ messages: unknown[] }>;
  steps?: PromiseLike<Parameters<typeof withSteering>[1]>;
};

const MAX_STEPS = 20;
const NOT_INSTALLED = 'The AI SDK is not installed. Install it beside sabir: npm install ai';

/**
 * Any model of the AI SDK with its tools, or an agent of the AI SDK.
 *
 * ```ts
 * aiSdkAgent({ model: openai('gpt-5'), instructions: 'Be brief.', tools: { lookup } });
 * aiSdkAgent({ agent: new ToolLoopAgent({ model, tools }) });
 * ```
 *
 * Tools with `needsApproval` ask the people who watch, tools without `execute` run in the client (`onToolCall`,
 * `addToolOutput`), and the same turn goes on. With AI SDK 7 it takes messages into the running turn: the next step
 * sees them.
 */
export function aiSdkAgent(options: AiSdkModelOptions | AiSdkAgentOptions): Agent {
  /** By turn id. */
  const steerings = new Map<string, SdkTurnSteering>();
  return {
    name: options.name ?? 'ai-sdk',
    concurrent: true,
    needsHistory: true,
    async start() {
      await loadSdk(options);
    },
    prompt(prompt) {
      const { turnId, signal } = prompt;
      const steering = createSdkTurnSteering(signal);
      steerings.set(turnId, steering);
      signal.addEventListener('abort', () => steerings.delete(turnId));
      const { clientTools } = options;
      const runsInClient = (toolName: string) => clientTools?.includes(toolName) ?? true;
      return approveCalls(prompt, createTurn(options, prompt, steering), runsInClient);
    },
    async steer(message) {
      const ai = await loadSdk(options);
      const steering = steerings.get(message.turnId);
      if (!ai.experimental_createSteering || !steering) return false;
      const { id, parts } = toSteeringChunk(message);
      const { attachments } = message;
      const asked = { messages: [{ id, role: 'user' as const, parts }], attachments };
      const conversation = toConversation(asked, options.fileUrls) as never;
      const [said] = (await ai.convertToModelMessages(conversation)) as object[];
      return said !== undefined && steering.steer(id, said);
    },
  };
}

/** One prompt, which takes several calls of the SDK where people are asked in between. */
function createTurn(
  options: AiSdkModelOptions | AiSdkAgentOptions,
  prompt: AgentPrompt,
  steering: SdkTurnSteering,
) {
  const { settings, errorText } = options;
  const { signal } = prompt;
  const usage: Usage = {};
  let messages: unknown[] = [];
  let steps = 0;
  let result: StreamResult | undefined;

  async function call(): Promise<StreamResult> {
    const ai = await loadSdk(options);
    const steered = ai.experimental_createSteering?.() as SdkSteering | undefined;
    if (steered) steering.begin(steered);
    const common = {
      ...settings,
      messages,
      abortSignal: signal,
      ...(steered && { experimental_steering: steered }),
    };
    if (options.agent) return (await options.agent.stream(common as never)) as StreamResult;
    const { tools, instructions, maxSteps = MAX_STEPS } = options;
    const stepsBefore = steps;
    const given = {
      onError() {
        // Without it the SDK writes the whole request to the console; the turn tells what failed.
      },
      stopWhen: (so: { steps: unknown[] }) => stepsBefore + so.steps.length >= maxSteps,
      ...common,
      model: chooseModel(options, prompt.model),
      ...(tools && { tools }),
      ...(instructions !== undefined && { system: instructions }),
    };
    return ai.streamText(given as never) as StreamResult;
  }

  async function* read(settled: Settled): AsyncGenerator<Chunk> {
    let failure: unknown;
    /** What it returns becomes a `message-metadata` chunk beside the part's own. */
    const see = ({ part }: { part: StreamPart }) => {
      if (part.type === 'error') failure ??= part.error;
      if (part.type !== 'finish-step') return undefined;
      steps++;
      addUsage(usage, toUsage(part.usage));
      return { usage: { ...usage } };
    };
    try {
      await (result ? goOn(result, settled) : begin());
      if (signal.aborted) return;
      result = await call();
      const stream = result.toUIMessageStream({
        sendSources: true,
        onError: toToolErrorText,
        messageMetadata: see,
      });
      for await (const chunk of readUntilAborted<Chunk>(() => stream, signal)) {
        if (chunk.type === 'error') throw failure ?? chunk.errorText;
        // Nobody has stopped it: a timeout among the settings has.
        if (chunk.type === 'abort') throw new SabirError(MODEL_TIMEOUT);
        // The SDK's stream does not say how the turn ended, and every message does.
        yield chunk.type === 'finish' ? toFinished(chunk) : chunk;
        steering.see(chunk);
      }
      steering.end();
    } catch (error) {
      throw toFailure(error, errorText);
    }
  }

  async function begin(): Promise<void> {
    const ai = await loadSdk(options);
    const tools = options.agent ? options.agent.tools : options.tools;
    const conversation = toConversation(prompt, options.fileUrls) as never;
    // A promise since 6.
    messages = (await ai.convertToModelMessages(conversation, { tools } as never)) as unknown[];
  }

  async function goOn(before: StreamResult, { approvals, outputs }: Settled): Promise<void> {
    const said = (await before.responseMessages) ?? (await before.response).messages;
    const decisions = approvals.map(({ approvalId, approved, reason, providerExecuted }) => ({
      type: 'tool-approval-response',
      approvalId,
      approved,
      ...(reason && { reason }),
      ...(providerExecuted && { providerExecuted }),
    }));
    const content = [...decisions, ...outputs.map(toToolResult)];
    const all = withSteering(said, await result?.steps);
    messages = [...messages, ...all, { role: 'tool', content }];
  }

  return read;
}

/** What a client gave, as the model reads it. */
function toToolResult({ callId: toolCallId, toolName, result }: ClientOutput) {
  const told = { type: 'tool-result', toolCallId, toolName };
  if (result.status !== 'done') {
    const value = result.status === 'failed' ? result.errorText : 'The user did not answer.';
    return { ...told, output: { type: 'error-text', value } };
  }
  const { output: value } = result;
  return { ...told, output: { type: typeof value === 'string' ? 'text' : 'json', value } };
}

function toFinished(finish: Extract<Chunk, { type: 'finish' }>): Chunk {
  const { messageMetadata } = finish;
  const metadata = isObject(messageMetadata) ? messageMetadata : {};
  return { ...finish, messageMetadata: { ...metadata, outcome: 'finished' } };
}

async function loadSdk({ ai }: CommonOptions): Promise<AiSdk> {
  if (ai) return ai;
  try {
    return (await import('ai')) as unknown as AiSdk;
  } catch (cause) {
    throw new Error(NOT_INSTALLED, { cause });
  }
}

function chooseModel({ model, models }: AiSdkModelOptions, name: string | undefined): AiSdkModel {
  if (!name || !models) return model;
  const isListed = typeof models === 'object' && Object.hasOwn(models, name);
  const chosen = typeof models === 'function' ? models(name) : isListed && models[name];
  if (!chosen) throw new Error(`There is no model “${name}” here.`);
  return chosen;
}

/** What the provider said, and nothing of what it was asked with: errors of the SDK hold both. */
function toFailure(error: unknown, errorText: CommonOptions['errorText']): Error {
  // Of several tries the last one tells why.
  const last = (error as { lastError?: unknown } | undefined)?.lastError ?? error;
  return last instanceof SabirError ? last : new Error(toShownText(last, errorText));
}

/** A tool's error is the agent's data: it is passed on as it is. */
function toToolErrorText(error: unknown): string {
  const message = (error as { message?: unknown } | null | undefined)?.message ?? error;
  if (typeof message === 'string' && message !== '') return message;
  return message == null || message === '' ? 'The tool failed.' : JSON.stringify(toJsonSafe(error));
}

/** 5 has it flat; later ones have details. */
function toUsage(said: unknown): Usage {
  type Details = Record<string, number | undefined>;
  type Said = Details & { inputTokenDetails?: Details; outputTokenDetails?: Details };
  const { inputTokenDetails, outputTokenDetails, ...flat } = (said ?? {}) as Said;
  const usage = {
    inputTokens: flat.inputTokens,
    outputTokens: flat.outputTokens,
    totalTokens: flat.totalTokens,
    reasoningTokens: outputTokenDetails?.reasoningTokens ?? flat.reasoningTokens,
    cachedInputTokens: inputTokenDetails?.cacheReadTokens ?? flat.cachedInputTokens,
  };
  const known = Object.entries(usage).filter(([, tokens]) => Number.isFinite(tokens));
  return Object.fromEntries(known) as Usage;
}

function addUsage(sum: Usage, usage: Usage): void {
  for (const [key, tokens] of Object.entries(usage) as [keyof Usage, number][]) {
    sum[key] = (sum[key] ?? 0) + tokens;
  }
}
