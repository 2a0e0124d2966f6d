export type {
  AgentEvent,
  Command,
  OpenHarnessDataTypes,
  OpenHarnessUIMessage,
  RunSnapshot,
  Runtime,
  RuntimeEvent,
  RuntimeStatus,
} from './events.ts';
export {
  createOpenHarnessHandler,
  type HandlerContext,
  type OpenHarnessHandlerOptions,
} from './handler.ts';
export type { OpenHarnessOptions } from './options.ts';
export { createOpenHarnessTranslator } from './translate.ts';
export { OpenHarnessChatTransport } from './transport.ts';
