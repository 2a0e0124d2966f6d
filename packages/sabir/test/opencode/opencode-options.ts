import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installOpenCode } from '../../../../scripts/install-opencode.ts';
import type { OpenCodeAgentOptions } from '../../src/platforms/node/opencode.ts';
import { launchOpenCode, type OpenCodeProcess } from '../../src/platforms/node/opencode-server.ts';
import type { ScriptedModel } from './scripted-model.ts';

/** A provider of that name, with the models `one` and `two`. */
const PROVIDER = 'scripted';

export type OpenCodeHome = {
  /** Where the agent works; it has a file `hello.txt`. */
  directory: string;
  /** For `openCodeAgent`: the real program, the scripted model, and a home of its own. */
  options: OpenCodeAgentOptions & { env: Record<string, string>; command: string };
  remove(): void;
};

/** All that the real OpenCode needs to run with a scripted model, and without a network. */
export function createOpenCodeHome(model: Pick<ScriptedModel, 'url'>): OpenCodeHome {
  const root = mkdtempSync(join(tmpdir(), 'sabir-opencode-'));
  const directory = join(root, 'project');
  mkdirSync(directory);
  writeFileSync(join(directory, 'hello.txt'), 'hello file\n');
  const cost = { input: 1, output: 2 };
  const images = { input: ['text', 'image'], output: ['text'] };
  return {
    directory,
    options: {
      command: installOpenCode(),
      directory,
      model: `${PROVIDER}/one`,
      config: {
        enabled_providers: [PROVIDER],
        model: `${PROVIDER}/one`,
        // Each turn would be kept in a repository, which takes longer than the turn.
        snapshot: false,
        provider: {
          [PROVIDER]: {
            npm: '@ai-sdk/openai-compatible',
            name: 'Scripted',
            options: { baseURL: model.url, apiKey: 'scripted' },
            models: {
              one: { name: 'One', reasoning: true, attachment: true, modalities: images, cost },
              two: { name: 'Two' },
            },
          },
        },
      },
      env: {
        HOME: root,
        XDG_CACHE_HOME: join(root, 'cache'),
        XDG_CONFIG_HOME: join(root, 'config'),
        XDG_DATA_HOME: join(root, 'data'),
        XDG_STATE_HOME: join(root, 'state'),
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
      },
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** The server alone, which asks as it does with an agent of its own. */
export function launchHome({ directory, options }: OpenCodeHome): Promise<OpenCodeProcess> {
  const permission = { edit: 'ask', bash: 'ask', webfetch: 'ask' };
  return launchOpenCode({
    program: options.command,
    directory,
    env: {
      ...process.env,
      ...options.env,
      OPENCODE_CONFIG_CONTENT: JSON.stringify({ ...options.config, permission }),
    },
    startMs: 60_000,
    stopMs: 3_000,
    signal: new AbortController().signal,
  });
}
