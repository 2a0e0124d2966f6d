export { type AgUiEncoder, type EncodeAgUiOptions, encodeAgUi } from './encode.ts';
export { type AgUiEvent, type AgUiInterrupt, type AgUiOutcome, toAgUiSse } from './events.ts';
