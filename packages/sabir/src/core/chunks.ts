/**
 * The one vocabulary: AI SDK UI message chunks as our own structural types, so that
 * nothing here depends on which major of `ai` an application has installed.
 *
 * `PortableChunk` is what 5, 6.0.9, 6 and 7 all parse. `Chunk` is the union of everything.
 * `ChunkOf<major>` is what that major's client understands; type tests hold each of them
 * to the real `UIMessageChunk`.
 */

export type JsonValue =
  | null
  | string
  | number
  | boolean
  | JsonValue[]
  | { [key: string]: JsonValue };

export type ProviderMetadata = Record<string, Record<string, JsonValue>>;

export type FinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';

type WithProviderMetadata = { providerMetadata?: ProviderMetadata };
type ToolFlags = { providerExecuted?: boolean; dynamic?: boolean };

type StartChunk = { type: 'start'; messageId?: string; messageMetadata?: unknown };
type FinishChunk = {
  type: 'finish';
  finishReason?: FinishReason;
  messageMetadata?: unknown;
};
type StartStepChunk = { type: 'start-step' };
type FinishStepChunk = { type: 'finish-step' };
type AbortChunk = { type: 'abort' };
type ErrorChunk = { type: 'error'; errorText: string };
export type MessageMetadataChunk = { type: 'message-metadata'; messageMetadata: unknown };

type TextStartChunk = { type: 'text-start'; id: string } & WithProviderMetadata;
export type TextDeltaChunk = {
  type: 'text-delta';
  id: string;
  delta: string;
} & WithProviderMetadata;
type TextEndChunk = { type: 'text-end'; id: string } & WithProviderMetadata;
type ReasoningStartChunk = { type: 'reasoning-start'; id: string } & WithProviderMetadata;
export type ReasoningDeltaChunk = {
  type: 'reasoning-delta';
  id: string;
  delta: string;
} & WithProviderMetadata;
type ReasoningEndChunk = { type: 'reasoning-end'; id: string } & WithProviderMetadata;

type ToolInputStartChunk = {
  type: 'tool-input-start';
  toolCallId: string;
  toolName: string;
} & ToolFlags;
export type ToolInputDeltaChunk = {
  type: 'tool-input-delta';
  toolCallId: string;
  inputTextDelta: string;
};
type ToolInputAvailableChunk = {
  type: 'tool-input-available';
  toolCallId: string;
  toolName: string;
  input: unknown;
} & ToolFlags &
  WithProviderMetadata;
type ToolInputErrorChunk = {
  type: 'tool-input-error';
  toolCallId: string;
  toolName: string;
  input: unknown;
  errorText: string;
} & ToolFlags &
  WithProviderMetadata;
type ToolOutputAvailableChunk = {
  type: 'tool-output-available';
  toolCallId: string;
  output: unknown;
  preliminary?: boolean;
} & ToolFlags;
type ToolOutputErrorChunk = {
  type: 'tool-output-error';
  toolCallId: string;
  errorText: string;
} & ToolFlags;

export type SourceUrlChunk = {
  type: 'source-url';
  sourceId: string;
  url: string;
  title?: string;
} & WithProviderMetadata;
export type SourceDocumentChunk = {
  type: 'source-document';
  sourceId: string;
  mediaType: string;
  title: string;
  filename?: string;
} & WithProviderMetadata;
export type FileChunk = { type: 'file'; url: string; mediaType: string } & WithProviderMetadata;
export type DataChunk = {
  type: `data-${string}`;
  id?: string;
  data: unknown;
  transient?: boolean;
};

/** What every supported client parses: AI SDK 5, 6.0.9, 6 and 7. */
export type PortableChunk =
  | StartChunk
  | FinishChunk
  | StartStepChunk
  | FinishStepChunk
  | AbortChunk
  | ErrorChunk
  | MessageMetadataChunk
  | TextStartChunk
  | TextDeltaChunk
  | TextEndChunk
  | ReasoningStartChunk
  | ReasoningDeltaChunk
  | ReasoningEndChunk
  | ToolInputStartChunk
  | ToolInputDeltaChunk
  | ToolInputAvailableChunk
  | ToolInputErrorChunk
  | ToolOutputAvailableChunk
  | ToolOutputErrorChunk
  | SourceUrlChunk
  | SourceDocumentChunk
  | FileChunk
  | DataChunk;

type ToolApprovalRequestChunk = {
  type: 'tool-approval-request';
  approvalId: string;
  toolCallId: string;
};
type ToolOutputDeniedChunk = { type: 'tool-output-denied'; toolCallId: string };

type ToolApprovalResponseChunk = {
  type: 'tool-approval-response';
  approvalId: string;
  approved: boolean;
  reason?: string;
  providerExecuted?: boolean;
} & WithProviderMetadata;
type CustomChunk = {
  type: 'custom';
  kind: `${string}.${string}`;
} & WithProviderMetadata;
type ReasoningFileChunk = {
  type: 'reasoning-file';
  url: string;
  mediaType: string;
} & WithProviderMetadata;
type ResetStepChunk = { type: 'reset-step' };
type SteeringMessageChunk = {
  type: 'steering-message';
  id: string;
  parts: Array<
    | { type: 'text'; text: string; providerMetadata?: ProviderMetadata }
    | {
        type: 'file';
        mediaType: string;
        url: string;
        filename?: string;
        providerMetadata?: ProviderMetadata;
      }
  >;
};

type SinceMajor6 = ToolApprovalRequestChunk | ToolOutputDeniedChunk;
type SinceMajor7 =
  | ToolApprovalResponseChunk
  | CustomChunk
  | ReasoningFileChunk
  | ResetStepChunk
  | SteeringMessageChunk
  | (Omit<FinishChunk, 'finishReason'> & { finishReason: 'interrupted' })
  | (AbortChunk & { reason?: string });

export type AiSdkMajor = 5 | 6 | 7;

/** What the client of one AI SDK major parses; 6 includes 6.0.9. */
export type ChunkOf<Major extends AiSdkMajor> =
  | PortableChunk
  | (Major extends 6 | 7 ? SinceMajor6 : never)
  | (Major extends 7 ? SinceMajor7 : never);

/** Everything that can be said: the union over all majors. */
export type Chunk = ChunkOf<AiSdkMajor>;

export type ChunkType = Chunk['type'];

/** The first AI SDK major whose client parses a chunk type; absent means all of them do. */
export const FIRST_MAJOR: Readonly<Record<string, AiSdkMajor>> = {
  'tool-approval-request': 6,
  'tool-output-denied': 6,
  'tool-approval-response': 7,
  custom: 7,
  'reasoning-file': 7,
  'reset-step': 7,
  'steering-message': 7,
};

export function isDataChunk(chunk: Chunk): chunk is DataChunk {
  return chunk.type.startsWith('data-');
}
