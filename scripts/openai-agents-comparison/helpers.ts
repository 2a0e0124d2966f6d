/** The two ways from a run of the OpenAI Agents SDK to a chat that are compared. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAiSdkUiMessageStream } from '@openai/agents-extensions/ai-sdk-ui';
import type { UIMessage } from '../../packages/sabir/src/message.ts';
import {
  type StreamedRun,
  toChunks,
} from '../../packages/sabir/src/sources/openai-agents/index.ts';
import { ROOT } from '../run-command.ts';

export type HelperName = 'sabir' | 'official';

/** `message` is the one that the run goes on with, as the client sent it. */
type Helper = (run: StreamedRun, message: UIMessage | undefined) => ReadableStream<unknown>;

export const HELPERS: Record<HelperName, Helper> = {
  // Approvals on the calls are what the client of the comparison can answer; it is an option
  // because clients before AI SDK 6 cannot.
  sabir: (run, message) => toChunks(run, { approvals: true, ...(message && { message }) }),
  // Takes a run and nothing else. Its types are of its own copy of the SDK.
  official: (run) => createAiSdkUiMessageStream(run as never),
};

export function installedVersion(packageName: string): string {
  const path = join(ROOT, 'node_modules', packageName, 'package.json');
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version;
}
