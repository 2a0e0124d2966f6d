/** What a turn's log says of a message that was sent into the running turn. */
import type { Chunk, DataChunk } from './chunks.ts';
import { isObject } from './loose.ts';

/** The message, as far as it is shown. */
type Message = {
  id: string;
  text: string;
  attachments: readonly { url: string; mediaType: string; filename?: string }[];
};

/** Viewers see the message where the agent has taken it. */
export function toSteeringChunk({
  id,
  text,
  attachments,
}: Message): Extract<Chunk, { type: 'steering-message' }> {
  // Field by field: a gateway or a session elsewhere may have sent more.
  const files = attachments.map(({ url, mediaType, filename }) => ({
    type: 'file' as const,
    url,
    mediaType,
    ...(filename !== undefined && { filename }),
  }));
  const words = text === '' ? [] : [{ type: 'text' as const, text }];
  return { type: 'steering-message', id, parts: [...files, ...words] };
}

/** The sender learns it from the log, whichever process runs the turn. No client keeps it. */
export function toSteeringRefusal({ id }: Pick<Message, 'id'>): DataChunk {
  return { type: 'data-steering', id, data: { id, status: 'refused' }, transient: true };
}

/** Whether the agent has taken the message; undefined where the chunk does not say. */
export function steeringVerdict(chunk: Chunk, id: string): boolean | undefined {
  if (chunk.type === 'steering-message') return chunk.id === id ? true : undefined;
  if (chunk.type !== 'data-steering' || !isObject(chunk.data)) return undefined;
  return chunk.data.id === id && chunk.data.status === 'refused' ? false : undefined;
}
