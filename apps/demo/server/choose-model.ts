import type { Model } from '../flow/model.ts';
import { createScriptedModel } from '../flow/scripted-model.ts';
import { createOpenAICompatibleModel } from './openai-compatible-model.ts';

export type Environment = Record<string, string | undefined>;

/** A key in the server's environment means a real model; without one the demo plays its script. */
export function chooseModel(env: Environment, speed?: number): Model {
  const model = env.SABIR_MODEL;
  if (env.SABIR_MODEL_BASE_URL && env.SABIR_MODEL_API_KEY) {
    if (!model) throw new Error('SABIR_MODEL_BASE_URL needs SABIR_MODEL, the name of a model.');
    return createOpenAICompatibleModel({
      baseUrl: env.SABIR_MODEL_BASE_URL,
      apiKey: env.SABIR_MODEL_API_KEY,
      model,
    });
  }
  if (env.OPENAI_API_KEY) {
    return createOpenAICompatibleModel({
      baseUrl: 'https://api.openai.com/v1',
      apiKey: env.OPENAI_API_KEY,
      model: model ?? 'gpt-5-mini',
    });
  }
  if (env.ANTHROPIC_API_KEY) {
    // Anthropic answers the OpenAI protocol at this address, tools and streaming included.
    return createOpenAICompatibleModel({
      baseUrl: 'https://api.anthropic.com/v1',
      apiKey: env.ANTHROPIC_API_KEY,
      model: model ?? 'claude-sonnet-4-5',
    });
  }
  return createScriptedModel({ speed });
}
