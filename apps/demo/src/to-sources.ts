import type { ChatPart } from './chat-message.ts';

export type Source = {
  key: string;
  title: string;
  /** Absent for a document, and for an address that no link should lead to. */
  link?: { url: string; host: string };
  /** What is known of it beside its title. */
  note?: string;
};

/** What the answer was taken from, each once, in the order in which it was named. */
export function toSources(parts: readonly ChatPart[]): Source[] {
  const sources = new Map<string, Source>();
  const add = (source: Source) => sources.has(source.key) || sources.set(source.key, source);
  for (const part of parts) {
    if (part.type === 'source-url') {
      const link = toLink(part.url);
      add({ key: part.url, title: part.title || part.url, ...(link && { link }) });
    } else if (part.type === 'source-document') {
      const { title, filename } = part;
      const note = filename && filename !== title ? filename : 'Document';
      add({ key: `document ${filename ?? title}`, title, note });
    }
  }
  return [...sources.values()];
}

/** A model may name any address: only those of the web become links. */
function toLink(address: string): Source['link'] {
  const url = URL.parse(address);
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') return undefined;
  return { url: url.href, host: url.host.replace(/^www\./, '') };
}
