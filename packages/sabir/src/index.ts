export { createMessageAccumulator, type MessageAccumulator } from './core/accumulator.ts';
export type { ToolCallOptions } from './core/accumulator-core.ts';
export type { AuditEvent } from './core/audit.ts';
export type {
  AiSdkMajor,
  Chunk,
  ChunkOf,
  ChunkType,
  FinishReason,
  PortableChunk,
  ProviderMetadata,
} from './core/chunks.ts';
export { compactChunks } from './core/compact.ts';
export { createDowngrade } from './core/downgrade.ts';
export { type ErrorCode, SabirError, toErrorText } from './core/errors.ts';
export { createFold, foldChunks } from './core/fold.ts';
export type { UIDataTypes, UIMessage, UIMessagePart, UITool, UITools } from './core/message.ts';
export type { MessageMetadata, TurnOutcome, Usage } from './core/outcome.ts';
export { createSseDecoder, encodeSse } from './core/sse.ts';
export type { Channel, Logger, Translator, TranslatorStats } from './core/translator.ts';
export { createVerifier, type Violation, type ViolationCode, verifyChunks } from './core/verify.ts';
