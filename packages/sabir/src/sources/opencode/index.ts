export type {
  OpenCodeDataTypes,
  OpenCodeEvent,
  OpenCodeQuestionData,
  OpenCodeUIMessage,
} from './events.ts';
export { createOpenCodeTranslator, type OpenCodeOptions } from './translate.ts';
