import type { FileChunk } from '../../core/chunks.ts';
import type { Loose } from '../../core/loose.ts';
import { isLoose, textOf } from './events.ts';

export type ToolOutput = {
  output: unknown;
  files: FileChunk[];
  /** The tool did not do what it was asked. */
  errorText?: string;
};

/** The texts that the SDK itself puts in the place of what a tool could not give. */
const SDK_ERRORS =
  /^(An error occurred while (running the tool|parsing tool arguments)\b|Tool '[^']*' timed out after \d+ms\.$|Tool call (was )?(aborted|cancelled)\b)/;

/** What a tool gave: as the tool said it where that is known, else as the model reads it. */
export function readOutput(
  item: Loose,
  isToolError: ((output: unknown) => boolean) | undefined,
): ToolOutput {
  const raw = isLoose(item.rawItem) ? item.rawItem : {};
  const files = filesOf(raw);
  const given = item.output ?? raw.tools ?? plain(raw.output) ?? null;
  const output = files.length > 0 ? outputBeside(raw.output) : given;
  if (raw.type === 'apply_patch_call_output' && raw.status === 'failed') {
    return { output, files, errorText: textOf(output) ?? 'The patch could not be applied.' };
  }
  if (raw.status === 'incomplete') {
    return { output, files, errorText: 'The tool was stopped before it was done.' };
  }
  const isError = isToolError
    ? isToolError(output)
    : typeof output === 'string' && SDK_ERRORS.test(output);
  return isError
    ? { output, files, errorText: textOf(output) ?? 'The tool failed.' }
    : { output, files };
}

function plain(output: unknown): unknown {
  return isLoose(output) && output.type === 'text' ? output.text : output;
}

/** What the model reads beside the files: they have parts of their own. */
function outputBeside(output: unknown): unknown {
  const texts = (Array.isArray(output) ? output : [output])
    .map((part) => (isLoose(part) ? textOf(part.text) : undefined))
    .filter((text) => text !== undefined);
  return texts.length > 0 ? texts.join('\n') : 'See the file.';
}

function filesOf({ type, output }: Loose): FileChunk[] {
  if (type === 'computer_call_result') {
    const shot = isLoose(output) ? textOf(output.data) : undefined;
    return shot ? [{ type: 'file', mediaType: 'image/png', url: toUrl(shot, 'image/png') }] : [];
  }
  return (Array.isArray(output) ? output : [output]).flatMap((part) => {
    const file = isLoose(part) ? fileOf(part) : undefined;
    return file ? [file] : [];
  });
}

/** An image, a file or a sound of a tool or a message, in each of the forms that the SDK knows. */
export function fileOf(part: Loose): FileChunk | undefined {
  if (part.type === 'audio') return soundOf(part);
  const isImage = part.type === 'image' || part.type === 'input_image';
  if (!isImage && part.type !== 'file' && part.type !== 'input_file') return undefined;
  const given = isImage ? part.image : part.file;
  const mediaType = (isLoose(given) && textOf(given.mediaType)) || (isImage ? 'image/png' : '');
  const source = isLoose(given) ? (given.url ?? given.data) : given;
  const text = source instanceof Uint8Array ? toBase64(source) : textOf(source);
  if (text === undefined) return undefined;
  const url = toUrl(text, mediaType || 'application/octet-stream');
  return { type: 'file', url, mediaType: mediaTypeOf(url) ?? (mediaType || guessType(url)) };
}

/** What is only the id of a sound elsewhere can be played by nobody here. */
function soundOf({ audio, format, providerData }: Loose): FileChunk | undefined {
  const data = textOf(audio);
  const said = textOf(format) ?? (isLoose(providerData) ? textOf(providerData.format) : undefined);
  const mediaType = `audio/${said ?? 'wav'}`;
  return data ? { type: 'file', url: toUrl(data, mediaType), mediaType } : undefined;
}

/** Addresses stay; base64 becomes one. */
export function toUrl(text: string, mediaType: string): string {
  return /^[a-z][a-z0-9+.-]*:/i.test(text) ? text : `data:${mediaType};base64,${text}`;
}

function mediaTypeOf(url: string): string | undefined {
  return /^data:([^;,]+)/.exec(url)?.[1];
}

const TYPES: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  txt: 'text/plain',
  csv: 'text/csv',
  json: 'application/json',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
};

function guessType(url: string): string {
  const extension = /\.([a-z0-9]+)(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase() ?? '';
  return TYPES[extension] ?? 'application/octet-stream';
}

function toBase64(bytes: Uint8Array): string {
  let text = '';
  // In pieces: a call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 8_192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  }
  return btoa(text);
}
