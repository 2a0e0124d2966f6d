import { describe, expect, it } from 'vitest';
import { called, fold, item, started } from '../../../test/openai-agents/events.ts';
import { outline } from '../../../test/openai-agents/outline.ts';

/** What is seen behind the beginning of the step. */
const seen = (events: unknown[]) => outline(fold([started, ...events])).slice(1);

describe('files of tools', () => {
  const filesOf = (...given: unknown[]) => {
    const { parts } = fold([
      started,
      called('c'),
      item('tool_output', { callId: 'c', output: given }),
    ]);
    return parts.flatMap((part) => (part.type === 'file' ? [[part.mediaType, part.url]] : []));
  };

  it('makes files of images and files, in every form that the SDK knows', () => {
    const data = 'aGk=';
    expect(
      filesOf(
        { type: 'image', image: { data, mediaType: 'image/gif' } },
        { type: 'image', image: data },
        { type: 'input_image', image: 'data:image/webp;base64,aGk=' },
        { type: 'file', file: { url: 'https://a.example/b.PDF?c' } },
        { type: 'input_file', file: 'https://a.example/b.xyz' },
        { type: 'file', file: { data: new TextEncoder().encode('hi'), mediaType: 'text/plain' } },
        { type: 'file', file: { id: 'file_1' } },
      ),
    ).toEqual([
      ['image/gif', 'data:image/gif;base64,aGk='],
      ['image/png', 'data:image/png;base64,aGk='],
      ['image/webp', 'data:image/webp;base64,aGk='],
      ['application/pdf', 'https://a.example/b.PDF?c'],
      ['application/octet-stream', 'https://a.example/b.xyz'],
      ['text/plain', 'data:text/plain;base64,aGk='],
    ]);
  });

  it('plays what the model says, and writes it down', () => {
    const spoken = (part: object) =>
      seen([item('message_output_created', { content: [{ type: 'audio', ...part }] })]);
    const audio = 'aGk=';
    expect(spoken({ audio, format: 'mp3', transcript: 'Ahoy' })).toEqual([
      'says Ahoy',
      'file audio/mp3',
    ]);
    const providerData = { transcript: 'Ahoy', format: 'pcm16' };
    expect(spoken({ audio, providerData })).toEqual(['says Ahoy', 'file audio/pcm16']);
    expect(spoken({ audio })).toEqual(['file audio/wav']);
    expect(spoken({ audio: { id: 'audio_1' } })).toEqual([]);
  });

  it('carries a file of many bytes', () => {
    const bytes = new Uint8Array(100_000).fill(7);
    const [[, url] = []] = filesOf({ type: 'file', file: { data: bytes } });
    expect(Buffer.from(url?.split(',')[1] ?? '', 'base64').equals(bytes)).toBe(true);
  });

  it('keeps the words beside the files', () => {
    const image = { type: 'image', image: 'aGk=' };
    const given = (words: unknown[]) =>
      seen([called('c'), item('tool_output', { callId: 'c', output: [...words, image] })]);
    const words = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ];
    expect(given(words)).toEqual(['search({"q":1}) = "a\\nb"', 'file image/png']);
    expect(given([])).toEqual(['search({"q":1}) = "See the file."', 'file image/png']);
  });

  it('shows the screen of a computer', () => {
    const calls = item('tool_called', {
      type: 'computer_call',
      callId: 'c',
      action: { type: 'wait' },
    });
    const shot = (given: unknown) =>
      item('tool_output', { type: 'computer_call_result', callId: 'c', output: given });
    expect(seen([calls, shot({ data: 'aGk=' })])).toEqual([
      ...['computer({"type":"wait"}) = "See the file."', 'file image/png'],
    ]);
    expect(seen([calls, shot(null)])).toEqual(['computer({"type":"wait"}) = null']);
  });
});
