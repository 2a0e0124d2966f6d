import { createId } from '../core/id.ts';
import type { MessageLike, UIMessage } from '../core/message.ts';

type FilePart = { type: 'file'; mediaType: string; url: string; filename?: string };

type MetadataOf<M> = M extends { metadata?: infer Metadata } ? Metadata : unknown;

/** What somebody says: words, files, or a message's parts as they are. */
export type UserInput<M extends MessageLike = UIMessage> =
  | string
  | {
      text?: string;
      /** From an `<input type="file">`, or with an address already. */
      files?: Iterable<File | Omit<FilePart, 'type'>>;
      parts?: M['parts'];
      metadata?: MetadataOf<M>;
      /** The message that it takes the place of. */
      messageId?: string;
    };

export async function toUserMessage<M extends MessageLike>(input: UserInput<M>): Promise<M> {
  const {
    text,
    files = [],
    parts = [],
    metadata,
    messageId: id = createId(),
  } = typeof input === 'string' ? { text: input } : input;
  const toPart = (file: File | Omit<FilePart, 'type'>): FilePart | Promise<FilePart> =>
    'url' in file
      ? { ...file, type: 'file' }
      : new Promise((resolve, reject) => {
          const reader = new FileReader();
          reader.onload = () =>
            resolve({
              type: 'file',
              mediaType: file.type,
              filename: file.name,
              url: reader.result as string,
            });
          reader.onerror = () => reject(reader.error);
          reader.readAsDataURL(file);
        });
  const all: object[] = [...(await Promise.all(Array.from(files, toPart))), ...parts];
  if (text) all.push({ type: 'text', text });
  return { id, role: 'user', parts: all, ...(metadata && { metadata }) } as MessageLike as M;
}
