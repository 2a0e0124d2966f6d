import type { SourceDocumentChunk, SourceUrlChunk } from '../../core/chunks.ts';
import type { Loose } from '../../core/loose.ts';
import { isLoose, textOf } from './events.ts';

/**
 * Citations → sources, each once: the same one is told while the text streams, with the finished
 * text, and with the message.
 */
export function createCitations() {
  const told = new Set<string>();

  function once<Source extends SourceUrlChunk | SourceDocumentChunk>(
    key: string,
    make: (sourceId: string) => Source,
  ): Source | undefined {
    if (told.has(key)) return undefined;
    told.add(key);
    return make(`source-${told.size}`);
  }

  return {
    /** A source that the message has already. */
    goOnWith({ type, url, providerMetadata, filename }: Loose): void {
      if (type === 'source-url') told.add(url as string);
      if (type !== 'source-document') return;
      const { openai } = isLoose(providerMetadata) ? providerMetadata : {};
      told.add(`file ${(isLoose(openai) && openai.fileId) || filename}`);
    },
    /** Undefined for what is no source, or has been told. */
    read(citation: Loose): SourceUrlChunk | SourceDocumentChunk | undefined {
      // Chat Completions puts what it says into a field named like the type.
      const inner = citation.url_citation ?? citation.file_citation;
      const {
        url: address,
        title: name,
        ...rest
      }: Loose = isLoose(inner) ? { ...citation, ...inner } : citation;
      const url = textOf(address);
      const title = textOf(name);
      if (url) {
        return once(url, (sourceId) => ({
          type: 'source-url',
          sourceId,
          url,
          ...(title && { title }),
          ...placeOf(rest),
        }));
      }
      const fileId = textOf(rest.file_id) ?? textOf(rest.fileId);
      const filename = textOf(rest.filename);
      if (!fileId && !filename) return undefined;
      return once(`file ${fileId ?? filename}`, (sourceId) => ({
        type: 'source-document',
        sourceId,
        mediaType: textOf(rest.mediaType) ?? 'text/plain',
        title: title ?? filename ?? (fileId as string),
        ...(filename && { filename }),
        ...(fileId && { providerMetadata: { openai: { fileId } } }),
      }));
    },
  };
}

/** Where in the text it is cited first. */
function placeOf({ start_index: startIndex, end_index: endIndex }: Loose) {
  if (typeof startIndex !== 'number' || typeof endIndex !== 'number') return undefined;
  return { providerMetadata: { openai: { startIndex, endIndex } } };
}
