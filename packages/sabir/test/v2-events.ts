/** Chunks and the V2 events that an encoder makes of them. */
import type { Chunk } from '../src/core/chunks.ts';
import { createV2Encoder, type V2EncoderOptions } from '../src/wires/agent-ops/encode.ts';
import type { V2Event } from '../src/wires/agent-ops/events.ts';

export const START: Chunk[] = [{ type: 'start', messageId: 't' }, { type: 'start-step' }];

export function encode(chunks: Chunk[], options: V2EncoderOptions = { turnId: 't' }): V2Event[] {
  const encoder = createV2Encoder(options);
  return chunks.flatMap((chunk) => encoder.push(chunk));
}

/** The events behind the start of a turn, without the turn's id and without what the agent is doing. */
export function eventsOf(...chunks: unknown[]): object[] {
  const events = encode([...START, ...(chunks as Chunk[])]);
  return events
    .filter(({ type }) => type !== 'agentStatus' && type !== 'message.create')
    .map(({ turnId: _, ...event }) => event);
}

export const text = (id: string, delta: string): Chunk[] => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta },
  { type: 'text-end', id },
];
export const TEXT = 'message.part.text-delta';
export const UPDATE = 'message.part.tool-update';
export const call = { callId: 'c', toolName: 'bash' };
export const named: Chunk = { type: 'tool-input-start', toolCallId: 'c', toolName: 'bash' };
export const called: Chunk = {
  type: 'tool-input-available',
  toolCallId: 'c',
  toolName: 'bash',
  input: { a: 1 },
};
export const running = { type: UPDATE, ...call, status: 'running', args: { a: 1 } };
