import { OpenAIProvider, Runner } from '@openai/agents';
import type { DeskContext } from '../desk/agents.ts';
import { createScriptedModels } from '../desk/scripted-model.ts';
import type { Model } from '../flow/model.ts';
import { createScriptedModel } from '../flow/scripted-model.ts';
import { createOpenAICompatibleModel } from './openai-compatible-model.ts';

export type Environment = Record<string, string | undefined>;

/** Somebody who speaks the OpenAI protocol. */
export type Provider = { baseUrl: string; apiKey: string; model: string };

const OPENAI = 'https://api.openai.com/v1';

/** A key in the server's environment means a real model. */
export function findProvider(env: Environment): Provider | undefined {
  const model = env.SABIR_MODEL;
  if (env.SABIR_MODEL_BASE_URL && env.SABIR_MODEL_API_KEY) {
    if (!model) throw new Error('SABIR_MODEL_BASE_URL needs SABIR_MODEL, the name of a model.');
    return { baseUrl: env.SABIR_MODEL_BASE_URL, apiKey: env.SABIR_MODEL_API_KEY, model };
  }
  if (env.OPENAI_API_KEY) {
    return { baseUrl: OPENAI, apiKey: env.OPENAI_API_KEY, model: model ?? 'gpt-5-mini' };
  }
  if (env.ANTHROPIC_API_KEY) {
    return {
      // Anthropic answers the OpenAI protocol at this address, tools and streaming included.
      baseUrl: 'https://api.anthropic.com/v1',
      apiKey: env.ANTHROPIC_API_KEY,
      model: model ?? 'claude-sonnet-4-5',
    };
  }
}

/** The model of the flow in the first tab; without a key the demo plays its script. */
export function chooseModel(env: Environment, speed?: number): Model {
  const provider = findProvider(env);
  return provider ? createOpenAICompatibleModel(provider) : createScriptedModel({ speed });
}

/** What runs the agents of the desk in the second tab. */
export type DeskModel = {
  name: string;
  isScripted: boolean;
  /** Only OpenAI's own models can search the web. */
  canSearchWeb: boolean;
  runnerFor(context: DeskContext): Runner;
};

export function chooseDeskModel(env: Environment, speed?: number): DeskModel {
  const provider = findProvider(env);
  // What people say is nobody else's: the SDK would send a trace of every run to OpenAI.
  const tracingDisabled = true;
  if (!provider) {
    const modelFor = createScriptedModels(speed);
    return {
      name: 'scripted model',
      isScripted: true,
      canSearchWeb: false,
      runnerFor: (context) => new Runner({ model: modelFor(context), tracingDisabled }),
    };
  }
  const { baseUrl, apiKey, model } = provider;
  const isOpenAI = baseUrl === OPENAI;
  const modelProvider = new OpenAIProvider({
    apiKey,
    baseURL: baseUrl.replace(/\/+$/, ''),
    useResponses: isOpenAI,
  });
  const runner = new Runner({ model, modelProvider, tracingDisabled });
  return {
    name: model,
    isScripted: false,
    canSearchWeb: isOpenAI,
    runnerFor: () => runner,
  };
}
