/** The two ways from a run of the OpenAI Agents SDK to a chat that are compared. */
import { createAiSdkUiMessageStream } from '@openai/agents-extensions/ai-sdk-ui';
import type { UIMessage } from '../../packages/sabir/src/core/message.ts';
import {
  type StreamedRun,
  toChunks,
} from '../../packages/sabir/src/sources/openai-agents/index.ts';

export type StreamName = 'sabir' | 'official';

/** `message` is the one that the run goes on with, as the client sent it. */
type OpenStream = (run: StreamedRun, message: UIMessage | undefined) => ReadableStream<unknown>;

export const STREAMS: Record<StreamName, OpenStream> = {
  // Approvals on the calls are what the client of the comparison can answer; it is an option
  // because clients before AI SDK 6 cannot.
  sabir: (run, message) => toChunks(run, { approvals: true, ...(message && { message }) }),
  // Takes a run and nothing else. Its types are of its own copy of the SDK.
  official: (run) => createAiSdkUiMessageStream(run as never),
};
