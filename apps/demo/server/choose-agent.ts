import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { type Agent, scriptedAgent } from 'sabir/session';
import { aiSdkAgent } from 'sabir/session/ai-sdk';
import { openCodeAgent } from 'sabir/session/opencode';
import { type Environment, findProvider, type Provider } from './choose-model.ts';
import { toExplanation } from './openai-compatible-model.ts';

const INSTRUCTIONS =
  'You are the pilot of an old Mediterranean port. You answer in a few sentences.';

/** Who answers in the sessions of the third tab. */
export type SessionAgent = {
  name: string;
  create(): Agent;
};

export function chooseAgent(env: Environment, speed: number): SessionAgent {
  if (env.SABIR_AGENT === 'opencode') return chooseOpenCode(env);
  if (env.SABIR_AGENT && env.SABIR_AGENT !== 'scripted') {
    throw new Error(`SABIR_AGENT is scripted or opencode, not ${env.SABIR_AGENT}.`);
  }
  const provider = env.SABIR_AGENT ? undefined : findProvider(env);
  if (provider) return chooseModel(provider);
  return { name: 'scripted agent', create: () => scriptedAgent({ speed }) };
}

function chooseModel({ baseUrl: baseURL, apiKey, model: name }: Provider): SessionAgent {
  const model = createOpenAICompatible({ name: 'provider', baseURL, apiKey, includeUsage: true })(
    name,
  );
  const options = { model, instructions: INSTRUCTIONS, errorText };
  return { name, create: () => aiSdkAgent(options) };
}

/** A provider's own words may quote the key or what was said: people get ours. */
function errorText(error: unknown): string {
  const { statusCode } = (error ?? {}) as { statusCode?: unknown };
  if (typeof statusCode === 'number') return toExplanation(statusCode);
  return 'The agent could not go on. Try again in a moment.';
}

function chooseOpenCode({ SABIR_MODEL: model, SABIR_DIRECTORY: directory }: Environment) {
  const options = { ...(model && { model }), ...(directory && { directory }) };
  return {
    name: model ? `OpenCode with ${model}` : 'OpenCode',
    create: () => openCodeAgent(options),
  };
}
