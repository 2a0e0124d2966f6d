/** `--agent ai-sdk`: a model of a provider that is installed beside the person's own code. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type AiSdk, type AiSdkModel, aiSdkAgent } from '../sources/ai-sdk/agent.ts';
import type { LoadedAgent } from './agents.ts';
import { CliError, usageError } from './cli-error.ts';

type Provider = { languageModel(modelId: string): AiSdkModel };
type Options = { model: string | undefined; cwd: string };

export async function loadAiSdkAgent({ model: wanted, cwd }: Options): Promise<LoadedAgent> {
  const [, providerName, modelId] = /^([a-z0-9][a-z0-9.-]*)\/(.+)$/i.exec(wanted ?? '') ?? [];
  if (!providerName || !modelId) {
    const said = wanted === undefined ? '' : `, not “${wanted}”`;
    throw usageError(
      `--agent ai-sdk needs --model provider/model, such as openai/gpt-5${said}. ` +
        'The provider is the one of @ai-sdk/… that you have installed.',
    );
  }
  const packageName = `@ai-sdk/${providerName}`;
  const missing: string[] = [];
  const load = async (name: string) => {
    const found = await importOrNothing(cwd, name);
    if (!found) missing.push(name);
    return found ?? {};
  };
  const ai = (await load('ai')) as unknown as AiSdk;
  const provider = await load(packageName);
  if (missing.length > 0) {
    const names = missing.join(' and ');
    throw new CliError(
      `${names} ${missing.length > 1 ? 'are' : 'is'} not installed in ${cwd}. ` +
        `Run there: npm install ${missing.join(' ')}`,
    );
  }
  const model = findProvider(provider, providerName, packageName).languageModel(modelId);
  checkKey(model);
  return { about: `AI SDK: ${wanted}`, agentFor: () => aiSdkAgent({ model, ai }) };
}

/** As a module in that folder would find it: it is the person's own, not ours. */
async function importOrNothing(cwd: string, name: string) {
  const file = resolveFrom(cwd, name);
  if (file === undefined) return undefined;
  try {
    return (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  } catch (error) {
    const { message } = error as Error;
    throw new CliError(`${name} could not be loaded: ${message}`, { cause: error });
  }
}

function resolveFrom(cwd: string, name: string): string | undefined {
  try {
    return createRequire(join(cwd, 'package.json')).resolve(name);
  } catch {
    // Not there, or of no use.
    return undefined;
  }
}

/** Its name is that of the package, or nearly so: @ai-sdk/google-vertex has `vertex`. */
function findProvider(
  exports: Record<string, unknown>,
  name: string,
  packageName: string,
): Provider {
  const camelCased = name.replace(/[-.](\w)/g, (_, letter: string) => letter.toUpperCase());
  const candidates = [exports[camelCased], ...Object.values(exports)];
  const found = candidates.find(
    (value) => typeof (value as Partial<Provider> | undefined)?.languageModel === 'function',
  );
  if (found) return found as Provider;
  throw new CliError(
    `${packageName} has no provider that can be used without settings. ` +
      'Write a module that exports aiSdkAgent({ model }), and give its path to --agent.',
  );
}

/**
 * Providers look for their key when they are first asked. Better told now, in their own words, which
 * name the variable. How they come by it is theirs, so one that does it otherwise is left in peace.
 */
function checkKey(model: AiSdkModel): void {
  try {
    const { config } = model as { config?: { headers?: () => unknown } };
    const headers = config?.headers?.();
    Promise.resolve(headers).catch(() => undefined);
  } catch (error) {
    const { name, message } = error as Error;
    if (/LoadAPIKey|LoadSetting/.test(name)) throw new CliError(message, { cause: error });
  }
}
