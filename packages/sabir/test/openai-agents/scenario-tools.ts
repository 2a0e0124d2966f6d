import { z } from 'zod';
import type { Decision } from '../../src/core/decision.ts';
import type { OpenAIAgentsOptions } from '../../src/sources/openai-agents/events.ts';
import type { Output } from './responses-script.ts';
import type { Script, scriptedModel } from './scripted-model.ts';
import type { Sdk } from './sdks.ts';

export type Model = ReturnType<typeof scriptedModel>;
export type Agent = InstanceType<Sdk['Agent']>;

export type Scenario = {
  name: string;
  script: Script;
  agent(sdk: Sdk, model: Model): Agent;
  /** What is said to the calls that wait, one after the other. */
  answers?: (Decision | 'expired')[];
  runOptions?: object;
  options?: OpenAIAgentsOptions;
  /** Releases before have not got what it needs. */
  since?: '0.20';
};

/** The smallest image. */
export const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==';

export const says = (text: string): { outputs: Output[] } => ({ outputs: [{ text }] });
export const calls = (...outputs: Output[]): { outputs: Output[] } => ({ outputs });

/** Tools that do everything that a tool can do. */
export function toolsOf({ tool }: Sdk) {
  const path = z.object({ path: z.string() });
  const nothing = z.object({});
  const base = { description: 'A tool.' };
  return {
    weather: tool({
      ...base,
      name: 'weather',
      parameters: z.object({ city: z.string() }),
      execute: async ({ city }) => `21° in ${city}`,
    }),
    find: tool({
      ...base,
      name: 'find',
      parameters: nothing,
      execute: async () => ({ hits: [1, 2] }),
    }),
    broken: tool({
      ...base,
      name: 'broken',
      parameters: nothing,
      execute: async (): Promise<string> => {
        throw new Error('no disk');
      },
    }),
    slow: tool({
      ...base,
      name: 'slow',
      parameters: nothing,
      timeoutMs: 5,
      execute: () => new Promise<string>((resolve) => setTimeout(resolve, 200, 'late')),
    }),
    chart: tool({
      ...base,
      name: 'chart',
      parameters: nothing,
      execute: async () => ({
        type: 'image' as const,
        image: { data: PIXEL, mediaType: 'image/png' },
      }),
    }),
    report: tool({
      ...base,
      name: 'report',
      parameters: nothing,
      execute: async () => ({
        type: 'file' as const,
        file: { url: 'https://files.example/report.pdf', filename: 'report.pdf' },
      }),
    }),
    remove: tool({
      ...base,
      name: 'remove',
      parameters: path,
      needsApproval: true,
      execute: async ({ path: removed }) => `removed ${removed}`,
    }),
  };
}

type ToolName = keyof ReturnType<typeof toolsOf>;

/** One agent with the tools of these names. */
export const withTools =
  (...names: ToolName[]) =>
  (sdk: Sdk, model: Model): Agent =>
    new sdk.Agent({ name: 'Helper', model, tools: names.map((name) => toolsOf(sdk)[name]) });
