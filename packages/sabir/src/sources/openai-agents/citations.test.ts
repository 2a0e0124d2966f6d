import { describe, expect, it } from 'vitest';
import { createCitations } from './citations.ts';

const read = (...citations: Record<string, unknown>[]) => {
  const { read: one } = createCitations();
  return citations.map((citation) => one(citation));
};

describe('citations', () => {
  it('makes a source of an address, with the place where it is cited first', () => {
    const citation = { type: 'url_citation', url: 'https://a.example/', title: 'A' };
    expect(read({ ...citation, start_index: 0, end_index: 5 }, citation)).toEqual([
      {
        type: 'source-url',
        sourceId: 'source-1',
        url: 'https://a.example/',
        title: 'A',
        providerMetadata: { openai: { startIndex: 0, endIndex: 5 } },
      },
      undefined,
    ]);
    expect(read({ url: 'https://a.example/', title: '', start_index: 'x', end_index: 1 })).toEqual([
      { type: 'source-url', sourceId: 'source-1', url: 'https://a.example/' },
    ]);
  });

  it('reads what Chat Completions says, in a field named like the type', () => {
    const inner = { url: 'https://a.example/', title: 'A', start_index: 1, end_index: 2 };
    expect(read({ type: 'url_citation', url_citation: inner })).toEqual([
      {
        type: 'source-url',
        sourceId: 'source-1',
        url: 'https://a.example/',
        title: 'A',
        providerMetadata: { openai: { startIndex: 1, endIndex: 2 } },
      },
    ]);
    expect(read({ type: 'file_citation', file_citation: { file_id: 'f' } })).toMatchObject([
      { type: 'source-document', title: 'f' },
    ]);
  });

  it('makes a document of a file, by its id or by its name', () => {
    const file = { type: 'file_citation', file_id: 'f', filename: 'a.pdf', index: 3 };
    expect(read(file, { ...file, filename: 'b.pdf' }, { filename: 'c.pdf', title: 'C' })).toEqual([
      {
        type: 'source-document',
        sourceId: 'source-1',
        mediaType: 'text/plain',
        title: 'a.pdf',
        filename: 'a.pdf',
        providerMetadata: { openai: { fileId: 'f' } },
      },
      undefined,
      {
        type: 'source-document',
        sourceId: 'source-2',
        mediaType: 'text/plain',
        title: 'C',
        filename: 'c.pdf',
      },
    ]);
  });

  it('takes the media type that an AI SDK model gives', () => {
    const source = { sourceType: 'document', mediaType: 'application/pdf', filename: 'a.pdf' };
    expect(read(source)).toMatchObject([{ mediaType: 'application/pdf' }]);
  });

  it('makes nothing of what names no source', () => {
    expect(read({}, { url: 5 }, { type: 'file_path' })).toEqual([undefined, undefined, undefined]);
  });
});
