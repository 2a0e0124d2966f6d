import { resolve } from 'node:path';
import {
  type CreateOpenCodeAgentOptions,
  createOpenCodeAgent,
  inMemory,
} from '../../sources/opencode/agent.ts';
import type { OpenCodeServer } from '../../sources/opencode/api.ts';
import type { Agent, AgentStart } from '../../turns/agent.ts';
import { findOpenCode } from './opencode-binary.ts';
import { launchOpenCode, type OpenCodeProcess } from './opencode-server.ts';

export {
  type CreateOpenCodeAgentOptions,
  createOpenCodeAgent,
  type OpenCodeSessions,
} from '../../sources/opencode/agent.ts';
export type { OpenCodeServer } from '../../sources/opencode/api.ts';

type PermissionAction = 'ask' | 'allow' | 'deny';
/** For all tools, or by tool; for some of them by what they are about to do, as a pattern. */
export type OpenCodePermissions =
  | PermissionAction
  | { [tool: string]: PermissionAction | { [pattern: string]: PermissionAction } };

export type OpenCodeAgentOptions = CreateOpenCodeAgentOptions & {
  /** A server that runs already. Without it one is started, and ended with the agent. */
  server?: string | OpenCodeServer;
  /** The folder to work in. Default: the current one. */
  directory?: string;
  /** The program. Default: `OPENCODE_BIN`, the PATH, then the npm package `opencode-ai`. */
  command?: string;
  /** What it may do by itself. Default: it asks before it edits, runs commands or fetches pages. */
  permission?: OpenCodePermissions;
  /** Anything else of OpenCode's own configuration: providers, models, tools, … */
  config?: Record<string, unknown>;
  /** Added to the environment it is started with. */
  env?: Record<string, string>;
  timing?: {
    /** How long it may take to start. Default 60 s. */
    startMs?: number;
    /** How long it may take to end, before it is killed. Default 3 s. */
    stopMs?: number;
  };
};

const ASKS_FIRST: OpenCodePermissions = { edit: 'ask', bash: 'ask', webfetch: 'ask' };

/** It neither replaces itself nor publishes what it is told. */
const QUIET = { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_SHARE: '1' };

/**
 * OpenCode as the agent of a session.
 *
 * ```ts
 * openCodeAgent({ directory: '/srv/project', model: 'anthropic/claude-sonnet-4-5' });
 * ```
 */
export function openCodeAgent(options: OpenCodeAgentOptions = {}): Agent {
  const { server, directory } = options;
  if (server !== undefined) {
    const given = typeof server === 'string' ? { url: server } : server;
    return createOpenCodeAgent(
      { ...(directory !== undefined && { directory }), ...given },
      options,
    );
  }
  return createLaunchedAgent(options);
}

/** Owns the process; one that has ended is started again for the next prompt. */
function createLaunchedAgent(options: OpenCodeAgentOptions): Agent {
  const sessions = options.sessions ?? inMemory();
  const closing = new AbortController();
  let where: AgentStart | undefined;
  let running: Promise<{ agent: Agent; process: OpenCodeProcess }> | undefined;

  async function launch({ signal, ...rest }: AgentStart) {
    const directory = resolve(options.directory ?? '.');
    const env = { ...process.env, ...options.env };
    const { startMs = 60_000, stopMs = 3_000 } = options.timing ?? {};
    const launched = await launchOpenCode({
      program: findOpenCode({ command: options.command, directory, env }),
      directory,
      env: { ...QUIET, ...env, OPENCODE_CONFIG_CONTENT: toConfig(options, env) },
      startMs,
      stopMs,
      signal: AbortSignal.any([signal, closing.signal]),
    });
    const agent = createOpenCodeAgent(launched, { ...options, sessions });
    try {
      await agent.start?.({ ...rest, emit: (event) => rest.emit(event), signal });
    } catch (error) {
      await agent.close?.();
      await launched.stop();
      throw error;
    }
    return { agent, process: launched };
  }

  async function ensureRunning(): Promise<Agent> {
    closing.signal.throwIfAborted();
    if (!where) throw new Error('The agent was not started.');
    const known = await running?.catch(() => undefined);
    if (known && !known.process.gone.aborted) return known.agent;
    await known?.agent.close?.();
    running = launch(where);
    return (await running).agent;
  }

  return {
    name: 'opencode',
    async start(given) {
      where = given;
      await ensureRunning();
    },
    async prompt(prompt) {
      const agent = await ensureRunning();
      return agent.prompt(prompt);
    },
    async close() {
      closing.abort(new Error('The agent was closed.'));
      const known = await running?.catch(() => undefined);
      await known?.agent.close?.();
      await known?.process.stop();
    },
  };
}

function toConfig({ config, permission }: OpenCodeAgentOptions, env: NodeJS.ProcessEnv): string {
  const merged: Record<string, unknown> = { ...parse(env.OPENCODE_CONFIG_CONTENT), ...config };
  return JSON.stringify({
    ...merged,
    permission: permission ?? merged.permission ?? ASKS_FIRST,
  });
}

function parse(content: string | undefined): Record<string, unknown> {
  if (!content) return {};
  try {
    return JSON.parse(content) as Record<string, unknown>;
  } catch (cause) {
    throw new Error('OPENCODE_CONFIG_CONTENT is not JSON.', { cause });
  }
}
