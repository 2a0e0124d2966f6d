import type { UIMessage } from '../../src/core/message.ts';

type Loose = { type: string } & Record<string, unknown>;

/** A message in a few words a part, so that a test shows what a person sees. */
export function outline({ parts }: Pick<UIMessage, 'parts'>): string[] {
  return (parts as Loose[]).map(lineOf);
}

function lineOf(part: Loose): string {
  const { type, text, data, url, filename, mediaType } = part;
  const given = (data ?? {}) as Record<string, unknown>;
  if (type === 'step-start') return '—';
  if (type === 'text') return `says ${text}`;
  if (type === 'reasoning') return `thinks ${text}`;
  if (type === 'file') return `file ${mediaType}`;
  if (type === 'source-url') return `cites ${url}`;
  if (type === 'source-document') return `cites ${filename}`;
  if (type === 'data-agent') return `is ${given.name}${given.from ? ` after ${given.from}` : ''}`;
  if (type === 'data-question') return `asks ${given.text} ${given.status}`;
  if (!type.startsWith('tool-')) return type;
  const call = `${type.slice('tool-'.length)}(${JSON.stringify(part.input)})`;
  if (part.state === 'output-available') return `${call} = ${JSON.stringify(part.output)}`;
  if (part.state === 'output-error') return `${call} ! ${part.errorText}`;
  return `${call} ${part.state}`;
}
