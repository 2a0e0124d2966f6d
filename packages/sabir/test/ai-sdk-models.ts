/** Each major of the AI SDK with its own mock model, which says what a script has it say. */
import * as v5 from 'ai-v5';
import { MockLanguageModelV2 } from 'ai-v5/test';
import * as v6 from 'ai-v6';
import { MockLanguageModelV3 } from 'ai-v6/test';
import * as v609 from 'ai-v6-0-9';
import { MockLanguageModelV3 as OldMockLanguageModelV3 } from 'ai-v6-0-9/test';
import * as v7 from 'ai-v7';
import { MockLanguageModelV4 } from 'ai-v7/test';
import type { AiSdk, AiSdkAgent, AiSdkModel } from '../src/sources/ai-sdk/agent.ts';

/** What the model is called with, as far as tests look at it. */
export type ModelCall = {
  prompt: { role: string; content: unknown }[];
  abortSignal?: AbortSignal;
  temperature?: number;
};
type Part = { type: string; [field: string]: unknown };
/** One call of the model: parts, a failure, or what is decided when it is called. */
export type ScriptedStep = Part[] | Error | ((call: ModelCall) => Part[] | ReadableStream<Part>);
type ScriptedModel = { model: AiSdkModel; calls: ModelCall[] };
type AgentClass = new (settings: object) => AiSdkAgent;

type AiSdkRelease = {
  name: string;
  ai: AiSdk;
  Agent: AgentClass;
  model(steps: ScriptedStep[], modelId?: string): ScriptedModel;
  /** A generated file, as a model of that release gives it. */
  file(mediaType: string, base64: string): Part;
  finish(reason?: string): Part;
  error(message: string, about: object): Error;
};

type Mock = new (options: object) => object;
type CallError = new (about: never) => Error;

const USAGE = {
  inputTokens: { total: 3, noCache: 2, cacheRead: 1, cacheWrite: 0 },
  outputTokens: { total: 4, text: 2, reasoning: 2 },
};
const FLAT_USAGE = {
  inputTokens: 3,
  outputTokens: 4,
  totalTokens: 7,
  reasoningTokens: 2,
  cachedInputTokens: 1,
};

function release(
  name: string,
  sdk: AiSdk & { APICallError: CallError },
  Mock: Mock,
  Agent: unknown,
): AiSdkRelease {
  const isFlat = name === 'ai@5';
  const finish = (reason = 'stop') => ({
    type: 'finish',
    finishReason: isFlat ? reason : { unified: reason, raw: reason },
    usage: isFlat ? FLAT_USAGE : USAGE,
  });
  return {
    name,
    ai: sdk,
    Agent: Agent as AgentClass,
    finish,
    file: (mediaType, data) => ({
      type: 'file',
      mediaType,
      data: name === 'ai@7' ? { type: 'data', data } : data,
    }),
    error: (message, about) => new sdk.APICallError({ message, ...about } as never),
    model(steps, modelId = 'scripted') {
      const calls: ModelCall[] = [];
      const model = new Mock({
        modelId,
        async doStream(call: ModelCall) {
          calls.push(call);
          const step = steps[calls.length - 1] ?? say('No more.');
          if (step instanceof Error) throw step;
          const parts = typeof step === 'function' ? step(call) : step;
          if (parts instanceof ReadableStream) return { stream: parts };
          const hasEnd = parts.some(({ type }) => type === 'finish');
          const isCall = parts.some(({ type }) => type === 'tool-call');
          const end = hasEnd ? [] : [finish(isCall ? 'tool-calls' : 'stop')];
          return { stream: streamOf([{ type: 'stream-start', warnings: [] }, ...parts, ...end]) };
        },
      }) as AiSdkModel;
      return { model, calls };
    },
  };
}

export function streamOf(parts: Part[]): ReadableStream<Part> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

/** Says so much and then nothing, whatever is done about it. */
export function stuckAfter(parts: Part[]): ReadableStream<Part> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
    },
  });
}

export const say = (text: string, id = 't1'): Part[] => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta: text },
  { type: 'text-end', id },
];

/** A call whose input streams in two pieces. */
export function callTool(toolCallId: string, toolName: string, input: object): Part[] {
  const json = JSON.stringify(input);
  return [
    { type: 'tool-input-start', id: toolCallId, toolName },
    { type: 'tool-input-delta', id: toolCallId, delta: json.slice(0, 3) },
    { type: 'tool-input-delta', id: toolCallId, delta: json.slice(3) },
    { type: 'tool-input-end', id: toolCallId },
    { type: 'tool-call', toolCallId, toolName, input: json },
  ];
}

type Sdk = AiSdk & { APICallError: CallError };
const AI_SDK_5 = release('ai@5', v5 as Sdk, MockLanguageModelV2, v5.Experimental_Agent);
export const AI_SDK_6_0_9 = release(
  ...(['ai@6.0.9', v609 as Sdk, OldMockLanguageModelV3, v609.ToolLoopAgent] as const),
);
export const AI_SDK_6 = release('ai@6', v6 as Sdk, MockLanguageModelV3, v6.ToolLoopAgent);
export const AI_SDK_7 = release('ai@7', v7 as Sdk, MockLanguageModelV4, v7.ToolLoopAgent);
export const AI_SDK_RELEASES = [AI_SDK_5, AI_SDK_6_0_9, AI_SDK_6, AI_SDK_7];
