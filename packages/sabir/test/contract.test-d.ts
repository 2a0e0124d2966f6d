/** What only a compiler can prove of the contract. */
import { describe, expectTypeOf, it } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import {
  type ContractEvent,
  type ContractEventOf,
  decodeContract,
  encodeContract,
  isContractEvent,
  type StreamEvent,
} from '../src/wires/contract/index.ts';

declare const event: ContractEvent;

describe('the events of the contract', () => {
  it('are told apart by their type', () => {
    if (event.type === 'tool.call') {
      expectTypeOf(event).toEqualTypeOf<ContractEventOf<'tool.call'>>();
      expectTypeOf(event.data.toolName).toEqualTypeOf<string>();
    }
    if (event.type === 'tool.result' && event.data.state === 'output-error') {
      expectTypeOf(event.data.errorText).toEqualTypeOf<string>();
    }
    if (event.type === 'tool.approval' && event.data.state === 'approval-responded') {
      expectTypeOf(event.data.approval.approved).toEqualTypeOf<boolean>();
    }
    // @ts-expect-error: there is no such event
    expectTypeOf<ContractEventOf<'tool.calls'>>();
  });

  it('are made of chunks and make chunks', () => {
    expectTypeOf(encodeContract()).parameters.toEqualTypeOf<[Chunk]>();
    expectTypeOf(encodeContract()).returns.toEqualTypeOf<ContractEvent[]>();
    expectTypeOf(decodeContract()).returns.toEqualTypeOf<Chunk[]>();
    expectTypeOf(decodeContract().end).returns.toEqualTypeOf<Chunk[]>();
  });

  it('are read as anything that comes off a wire', () => {
    expectTypeOf<ContractEvent>().toExtend<StreamEvent>();
    expectTypeOf(decodeContract()).parameters.toEqualTypeOf<[StreamEvent]>();
    expectTypeOf(isContractEvent).guards.toEqualTypeOf<ContractEvent>();
  });
});
