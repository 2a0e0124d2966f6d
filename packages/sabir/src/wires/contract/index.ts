export { type ContractDecoder, type DecodeContractOptions, decodeContract } from './decode.ts';
export { type ContractEncoder, type EncodeContractOptions, encodeContract } from './encode.ts';
export {
  type ContractEvent,
  type ContractEventMap,
  type ContractEventOf,
  type ContractEventType,
  type ContractMeta,
  type ContractStatus,
  isContractEvent,
  type StreamEvent,
  toContractSse,
} from './events.ts';
export { applyEvent } from './reduce.ts';
