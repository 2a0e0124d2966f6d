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
  const { text, files = [], parts = [], metadata, messageId = createId() } = given;
  const all: { type: string }[] = [...(await Promise.all([...files].map(toFilePart))), ...parts];
  const words = { type: 'text', text };
  if (text) all.push(words);
  return {
    id: messageId,
    role: 'user',
    parts: all,
    ...(metadata !== undefined && { metadata }),
  } as MessageLike as M;
}

async function toFilePart(file: File | Omit<FilePart, 'type'>): Promise<FilePart> {
  if ('url' in file) return { type: 'file', ...file };
  const { type: mediaType, name: filename } = file;
  return { type: 'file', mediaType, filename, url: await readUrl(file) };
}

function readUrl(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
