/** The agent that `--agent` names, ready to be asked. Whatever is missing is told before it listens. */
import { existsSync, statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { openCodeDriver } from '../platforms/node/opencode.ts';
import { findOpenCode } from '../platforms/node/opencode-binary.ts';
import { type AgentDriver, scriptedDriver } from '../sessions/index.ts';
import { loadAiSdkAgent } from './ai-sdk-agent.ts';
import { CliError } from './cli-error.ts';
import type { ServeOptions } from './serve-flags.ts';
import { lazyDriver, shareDriver } from './shared-driver.ts';

export type Agent = {
  /** For people: what it is. */
  about: string;
  driver(sessionId: string): AgentDriver;
  /** After all its drivers were closed. */
  close?(): Promise<void>;
};

export type AgentOptions = Pick<ServeOptions, 'agent' | 'model' | 'directory'> & { cwd: string };

export async function loadAgent(options: AgentOptions): Promise<Agent> {
  const { agent, model, directory, cwd } = options;
  if (agent === 'scripted') {
    return { about: 'scripted: follows a script, without a model', driver: () => scriptedDriver() };
  }
  if (agent === 'opencode') return loadOpenCode(options);
  if (agent === 'ai-sdk') return loadAiSdkAgent({ model, cwd });
  return loadModule(resolve(cwd, agent), { model, directory, cwd });
}

function loadOpenCode({ model, directory }: AgentOptions): Agent {
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
    about: `OpenCode in ${directory}`,
    driver: () => openCodeDriver({ directory, ...(model !== undefined && { model }) }),
  };
}

function checkFolder(directory: string): void {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new CliError(`There is no folder ${directory}. Make it, or give another --directory.`);
}

type ModuleOptions = { model: string | undefined; directory: string; cwd: string };
type MakeDriver = (sessionId: string, given: Omit<ModuleOptions, 'cwd'>) => unknown;

const MUST_EXPORT =
  'Its default export must be an agent, { name, prompt }, or a function that makes one for a ' +
  'session: (sessionId) => agent. See AgentDriver in sabir/session.';

async function loadModule(file: string, { cwd, ...given }: ModuleOptions): Promise<Agent> {
  const shown = relative(cwd, file) || file;
  const found = (await importModule(file, shown)).default;
  if (isDriver(found)) {
    const shared = shareDriver(found);
    return {
      about: `${found.name}, from ${shown}: one for all sessions, one answer at a time`,
      driver: shared.forSession,
      close: shared.close,
    };
  }
  if (typeof found !== 'function') {
    throw new CliError(`${shown} exports no agent. ${MUST_EXPORT}`);
  }
  const make = found as MakeDriver;
  return {
    about: `from ${shown}`,
    driver: (sessionId) =>
      lazyDriver(shown, async () => {
        const made = await make(sessionId, given);
        if (isDriver(made)) return made;
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

function isDriver(value: unknown): value is AgentDriver {
  const { name, prompt } = (value ?? {}) as Partial<AgentDriver>;
  return typeof value === 'object' && typeof prompt === 'function' && typeof name === 'string';
}
