import type { UIMessage } from '../../core/message.ts';
import type { Logger } from '../../core/translator.ts';

export interface OpenHarnessOptions {
  /** Translator only: no flow around the agent. Decided from the events where not said. */
  bare?: boolean;
  /** Thinking becomes reasoning parts. Default true. */
  sendReasoning?: boolean;
  /** Every node becomes a step. Default true. */
  sendStepMarkers?: boolean;
  /** `data-flow-status` and `data-node` parts. Default false. */
  sendFlowMetadata?: boolean;
  /** `data-node-output` parts. Default false. */
  sendNodeOutputs?: boolean;
  generateMessageId?: () => string;
  /** What `run()` is given. Default: text → `{ message: text }`. */
  toInput?: (text: string, messages: UIMessage[]) => unknown;
  /** The flow's name where the events do not tell it. */
  flowName?: string;
  /** What a person is shown of an error. Default: its own message, without stack and paths. */
  errorText?: (error: unknown) => string;
  logger?: Logger;
}
