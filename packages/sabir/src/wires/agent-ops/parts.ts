/** Parts that a chunk and a part of a message spell alike, as V2 has them. */
import { toJsonSafe } from '../../core/json.ts';
import { isObject, type Loose } from '../../core/loose.ts';
import type { DataState, FileState, SourceState } from '../../sources/agent-ops/events.ts';
import { isData, isSource } from '../../sources/agent-ops/part-shapes.ts';

/** Metadata that V2 has words of its own for. */
const V2_METADATA = ['outcome', 'reason', 'code', 'usage'];
/** The name and the id of the data that carries all other metadata. */
const METADATA_NAME = 'message-metadata';

export function toFileState({ url, mediaType }: Loose): FileState {
  return { url: url as string, mediaType: mediaType as string };
}

/** Undefined where readers of V2 would refuse it: a source without an id. */
export function toSourceState(part: Loose): SourceState | undefined {
  const { sourceId, url, title, mediaType, filename } = part;
  const source: Loose = url === undefined ? { sourceId, mediaType } : { sourceId, url };
  if (title !== undefined) source.title = title;
  if (url === undefined && filename !== undefined) source.filename = filename;
  return isSource(source) ? (source as unknown as SourceState) : undefined;
}

/**
 * `data-*`, and what has no word in V2: it is data under the name of its type. Undefined where readers
 * of V2 would refuse the name.
 */
export function toDataState(part: Loose & { type: string }): DataState | undefined {
  const { type, id, ...rest } = part;
  const isNamedData = type.startsWith('data-');
  const data: DataState = {
    name: isNamedData ? type.slice('data-'.length) : type,
    ...(typeof id === 'string' && { id }),
    data: toJsonSafe(isNamedData ? rest.data : rest),
  };
  return isData(data) ? data : undefined;
}

/** The metadata that V2 has no words for; undefined if there is none. */
export function toMetadataState(metadata: unknown): DataState | undefined {
  const entries = isObject(metadata) ? Object.entries(metadata) : [];
  const others = entries.filter(([key]) => !V2_METADATA.includes(key));
  if (others.length === 0) return undefined;
  const data = toJsonSafe(Object.fromEntries(others));
  return { name: METADATA_NAME, id: METADATA_NAME, data };
}
