/** The AI SDK's UI message, spelled structurally: what `foldChunks` builds and a UI renders. */
import type { ProviderMetadata } from './chunks.ts';

export type UIDataTypes = Record<string, unknown>;
export type UITool = { input: unknown; output: unknown };
export type UITools = Record<string, UITool>;

type TextPart = {
  type: 'text';
  text: string;
  state?: 'streaming' | 'done';
  providerMetadata?: ProviderMetadata;
};
type ReasoningPart = {
  type: 'reasoning';
  id?: string;
  text: string;
  state?: 'streaming' | 'done';
  providerMetadata?: ProviderMetadata;
};
type SourceUrlPart = {
  type: 'source-url';
  sourceId: string;
  url: string;
  title?: string;
  providerMetadata?: ProviderMetadata;
};
type SourceDocumentPart = {
  type: 'source-document';
  sourceId: string;
  mediaType: string;
  title: string;
  filename?: string;
  providerMetadata?: ProviderMetadata;
};
type FilePart = {
  type: 'file';
  mediaType: string;
  url: string;
  filename?: string;
  providerMetadata?: ProviderMetadata;
};
type StepStartPart = { type: 'step-start' };

type DeepPartial<T> = T extends object ? { [K in keyof T]?: DeepPartial<T[K]> } : T;

type ToolState<Tool extends UITool> =
  | {
      state: 'input-streaming';
      input: DeepPartial<Tool['input']> | undefined;
      rawInput?: string;
      output?: never;
      errorText?: never;
    }
  | {
      state: 'input-available';
      input: Tool['input'];
      output?: never;
      errorText?: never;
      callProviderMetadata?: ProviderMetadata;
    }
  | {
      state: 'output-available';
      input: Tool['input'];
      output: Tool['output'];
      errorText?: never;
      preliminary?: boolean;
      callProviderMetadata?: ProviderMetadata;
    }
  | {
      state: 'output-error';
      input: Tool['input'] | undefined;
      rawInput?: unknown;
      output?: never;
      errorText: string;
      callProviderMetadata?: ProviderMetadata;
    };

type ToolPartBase = { toolCallId: string; providerExecuted?: boolean };

type ValueOf<T> = T[keyof T];

type ToolPart<Tools extends UITools = UITools> = ValueOf<{
  [Name in keyof Tools & string]: { type: `tool-${Name}` } & ToolPartBase & ToolState<Tools[Name]>;
}>;
type DynamicToolPart = { type: 'dynamic-tool'; toolName: string } & ToolPartBase &
  ToolState<UITool>;

type DataPart<Data extends UIDataTypes = UIDataTypes> = ValueOf<{
  [Name in keyof Data & string]: { type: `data-${Name}`; id?: string; data: Data[Name] };
}>;

export type UIMessagePart<Data extends UIDataTypes = UIDataTypes, Tools extends UITools = UITools> =
  | TextPart
  | ReasoningPart
  | ToolPart<Tools>
  | DynamicToolPart
  | SourceUrlPart
  | SourceDocumentPart
  | FilePart
  | DataPart<Data>
  | StepStartPart;

export interface UIMessage<
  Metadata = unknown,
  Data extends UIDataTypes = UIDataTypes,
  Tools extends UITools = UITools,
> {
  id: string;
  role: 'system' | 'user' | 'assistant';
  metadata?: Metadata;
  parts: Array<UIMessagePart<Data, Tools>>;
}

/** As much of a message as the messages of every AI SDK major have in common. */
export interface MessageLike {
  id: string;
  role: 'system' | 'user' | 'assistant';
  parts: ReadonlyArray<{ type: string }>;
}
