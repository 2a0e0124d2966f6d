/** Whether a part that only our own server has is what it should be, and what it is as a chunk. */

import type { FileChunk, SourceDocumentChunk, SourceUrlChunk } from '../../core/chunks.ts';
import type { Loose } from '../../core/loose.ts';
import type { DataState, FileState, SourceState } from './events.ts';

const isString = (value: unknown): value is string => typeof value === 'string';
const isMissing = (value: unknown) => value === undefined || value === null;
const isOptional = (value: unknown) => isMissing(value) || isString(value);

/** It becomes part of a chunk's type, and of a type's name in somebody's program. */
const DATA_NAME = /^[a-z0-9][\w.-]{0,63}$/i;
/** What the translator itself says: whoever could send it could ask in the server's name. */
const OWN_NAMES: ReadonlySet<unknown> = new Set(['agent-status', 'question', 'queue']);

export function isSource({ sourceId, url, mediaType, title, filename }: Loose): boolean {
  if (!isString(sourceId) || sourceId === '') return false;
  if (isString(url)) return isOptional(title);
  return isMissing(url) && isString(mediaType) && isString(title) && isOptional(filename);
}

export function isFile({ url, mediaType }: Loose): boolean {
  return isString(url) && isString(mediaType);
}

export function isData({ name, id, data }: Loose): boolean {
  if (!isString(name) || !DATA_NAME.test(name) || OWN_NAMES.has(name.toLowerCase())) return false;
  return isOptional(id) && data !== undefined;
}

export function toSourceChunk(source: SourceState): SourceUrlChunk | SourceDocumentChunk {
  const { sourceId, title } = source;
  if ('url' in source && isString(source.url)) {
    return { type: 'source-url', sourceId, url: source.url, ...(isString(title) && { title }) };
  }
  const { mediaType, filename } = source as Extract<SourceState, { mediaType: string }>;
  return {
    type: 'source-document',
    sourceId,
    mediaType,
    title: title as string,
    ...(isString(filename) && { filename }),
  };
}

export function toFileChunk({ url, mediaType }: FileState): FileChunk {
  return { type: 'file', url, mediaType };
}

/** By what data that replaces other data finds it; nothing if it stands for itself. */
export function dataKeyOf({ name, id }: DataState): string | undefined {
  return isString(id) ? JSON.stringify([name, id]) : undefined;
}
