import { describe, expect, test } from 'vitest';
import type { ChatPart } from '../src/chat-message.ts';
import { toSources } from '../src/to-sources.ts';

const page = (url: string, title?: string): ChatPart => ({
  type: 'source-url',
  sourceId: crypto.randomUUID(),
  url,
  ...(title && { title }),
});

describe('the sources of an answer', () => {
  test('are named once each, in the order in which they came', () => {
    const sources = toSources([
      page('https://www.example.com/a', 'A'),
      page('https://example.org/b?x=1'),
      { type: 'text', text: 'words' },
      page('https://www.example.com/a', 'A again'),
    ]);
    expect(sources).toEqual([
      {
        key: 'https://www.example.com/a',
        title: 'A',
        link: { url: 'https://www.example.com/a', host: 'example.com' },
      },
      {
        key: 'https://example.org/b?x=1',
        title: 'https://example.org/b?x=1',
        link: { url: 'https://example.org/b?x=1', host: 'example.org' },
      },
    ]);
  });

  test.each(['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', 'no address'])(
    'are no links where they lead out of the web: %s',
    (url) => {
      expect(toSources([page(url, 'Trap')])).toEqual([{ key: url, title: 'Trap' }]);
    },
  );

  test('may be documents, which have no address', () => {
    const document: ChatPart = {
      type: 'source-document',
      sourceId: 's',
      mediaType: 'application/pdf',
      title: 'The rules',
      filename: 'rules.pdf',
    };
    expect(toSources([document, { ...document, sourceId: 't' }])).toEqual([
      { key: 'document rules.pdf', title: 'The rules', note: 'rules.pdf' },
    ]);
  });
});
