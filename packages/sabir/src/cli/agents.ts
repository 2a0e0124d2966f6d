/** The agent that `--agent` names, ready to be asked. Whatever is missing is told before it listens. */
import { existsSync, statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openCodeAgent } from '../platforms/node/opencode.ts';
import { findOpenCode } from '../platforms/node/opencode-binary.ts';
import { type Agent, type AgentFunction, scriptedAgent } from '../sessions/index.ts';
import { toAgent } from '../turns/agent.ts';
import { loadAiSdkAgent } from './ai-sdk-agent.ts';
import { CliError } from './cli-error.ts';
import type { ServeOptions } from './serve-flags.ts';
import { lazyAgent, shareAgent } from './shared-agent.ts';

export type Suggestion = { title: string; message: string };

const SCRIPTED_SUGGESTIONS: readonly Suggestion[] = [
  { title: 'See a tool, a table and code', message: 'Compare the prices of the berths' },
  { title: 'Watch it from two windows', message: 'Read me the logbook' },
  { title: 'Be asked for permission', message: 'Cast off' },
  { title: 'See it go wrong', message: 'Sail into a storm' },
];

export type LoadedAgent = {
  /** For people: what it is. */
  about: string;
  /** What the page offers to ask it. */
  suggestions?: readonly Suggestion[];
  agentFor(sessionId: string): Agent;
  /** After the agents of all sessions were closed. */
  close?(): Promise<void>;
};

export type AgentOptions = Pick<ServeOptions, 'agent' | 'model' | 'directory'> & { cwd: string };

export async function loadAgent(options: AgentOptions): Promise<LoadedAgent> {
  const { agent, model, directory, cwd } = options;
  if (agent === 'scripted') {
    return {
      about: 'scripted: follows a script, without a model',
      suggestions: SCRIPTED_SUGGESTIONS,
      agentFor: () => scriptedAgent(),
    };
  }
  if (agent === 'opencode') return loadOpenCode(options);
  if (agent === 'ai-sdk') return loadAiSdkAgent({ model, cwd });
  return loadModule(resolve(cwd, agent), { model, directory, cwd });
}

function loadOpenCode({ model, directory }: AgentOptions): LoadedAgent {
  checkFolder(directory);
  if (model !== undefined && !/^[^/]+\/.+$/.test(model)) {
    throw new CliError(`--model must be provider/model for OpenCode, not “${model}”.`, {
      exitCode: 2,
    });
  }
  try {
    findOpenCode({ directory, env: process.env });
  } catch (error) {
    throw new CliError((error as Error).message, { cause: error });
  }
  return {
    about: `OpenCode in ${directory}${model === undefined ? '' : `, ${model}`}`,
    agentFor: () => openCodeAgent({ directory, ...(model !== undefined && { model }) }),
  };
}

function checkFolder(directory: string): void {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new CliError(`There is no folder ${directory}. Make it, or give another --directory.`);
}

type ModuleOptions = { model: string | undefined; directory: string; cwd: string };
type MakeAgent = (sessionId: string, given: Omit<ModuleOptions, 'cwd'>) => unknown;

const MUST_EXPORT =
  'Its default export must be an agent, which is { name, prompt } or an async generator function, or ' +
  'a function that makes one for a session: (sessionId) => agent. See Agent in sabir/session.';

async function loadModule(file: string, { cwd, ...given }: ModuleOptions): Promise<LoadedAgent> {
  const shown = relative(cwd, file) || file;
  const found = (await importModule(file, shown)).default;
  if (isAgent(found)) {
    const agent = toAgent(found);
    const shared = shareAgent(agent);
    const pace = agent.concurrent ? '' : ', one answer at a time';
    return {
      about: `${agent.name}, from ${shown}: one for all sessions${pace}`,
      agentFor: shared.forSession,
      close: shared.close,
    };
  }
  if (typeof found !== 'function') {
    throw new CliError(`${shown} exports no agent. ${MUST_EXPORT}`);
  }
  const make = found as MakeAgent;
  return {
    about: `from ${shown}${given.model === undefined ? '' : `, ${given.model}`}`,
    agentFor: (sessionId) =>
      lazyAgent(shown, async () => {
        const made = await make(sessionId, given);
        if (isAgent(made) || typeof made === 'function') return toAgent(made as Agent);
        throw new Error('The agent’s module made no agent.');
      }),
  };
}

async function importModule(file: string, shown: string): Promise<{ default?: unknown }> {
  if (!existsSync(file)) {
    throw new CliError(`There is no ${file}. --agent wants the path of a module.`);
  }
  try {
    return await import(pathToFileURL(file).href);
  } catch (error) {
    const { stack = String(error) } = error as Error;
    throw new CliError(`${shown} could not be loaded.\n${stack}`, { cause: error });
  }
}

/** An async generator function is one. Any other function may be what makes an agent. */
function isAgent(value: unknown): value is Agent | AgentFunction {
  if (Object.prototype.toString.call(value) === '[object AsyncGeneratorFunction]') return true;
  const { name, prompt } = (value ?? {}) as Partial<Agent>;
  return typeof value === 'object' && typeof prompt === 'function' && typeof name === 'string';
}
