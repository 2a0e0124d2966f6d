import { createId } from '../id.ts';
import type { MessageLike, UIMessage } from '../message.ts';

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
  const given = typeof input === 'string' ? { text: input } : input;
  const { text, files = [], parts = [], metadata, messageId: id = createId() } = given;
  const said = text ? [{ type: 'text', text }] : [];
  const all = [...(await Promise.all(Array.from(files, toFilePart))), ...parts, ...said];
  return { id, role: 'user', parts: all, ...(metadata ? { metadata } : {}) } as MessageLike as M;
}

function toFilePart(file: File | Omit<FilePart, 'type'>): FilePart | Promise<FilePart> {
  const type = 'file';
  if ('url' in file) return { ...file, type };
  return new Promise((resolve, reject) => {
    const { type: mediaType, name: filename } = file;
    const reader = new FileReader();
    reader.onload = () => resolve({ type, mediaType, filename, url: `${reader.result}` });
    reader.onerror = reject;
    reader.readAsDataURL(file);
  });
}
