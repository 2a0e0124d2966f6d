export { createMessageAccumulator, type MessageAccumulator } from './accumulator.ts';
export type { ToolCallOptions } from './accumulator-core.ts';
export type { AuditEvent } from './audit.ts';
export type {
  AiSdkMajor,
  Chunk,
  ChunkOf,
  ChunkType,
  FinishReason,
  PortableChunk,
  ProviderMetadata,
} from './chunks.ts';
export { compactChunks } from './compact.ts';
export { createDowngrade } from './downgrade.ts';
export { type ErrorCode, SabirError, toErrorText } from './errors.ts';
export { createFold, foldChunks } from './fold.ts';
export type { UIDataTypes, UIMessage, UIMessagePart, UITool, UITools } from './message.ts';
export type { MessageMetadata, TurnOutcome, Usage } from './outcome.ts';
export { createSseDecoder, encodeSse } from './sse.ts';
export type { Channel, Logger, Translator, TranslatorStats } from './translator.ts';
export { createVerifier, type Violation, type ViolationCode, verifyChunks } from './verify.ts';
