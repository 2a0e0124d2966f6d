import type { UIMessage } from '../src/core/message.ts';

/**
 * A message without what differs between the majors and no renderer reads: keys whose value is
 * undefined, and the id that some of them keep on reasoning parts.
 */
export function comparable(message: UIMessage | undefined): unknown {
  if (!message) return undefined;
  const plain = JSON.parse(JSON.stringify(message)) as UIMessage;
  for (const part of plain.parts) if (part.type === 'reasoning') delete part.id;
  return plain;
}
