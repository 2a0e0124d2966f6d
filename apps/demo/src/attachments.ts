import type { FileUIPart } from 'ai';

/** What a session's route takes at most, counted as it is sent: in data URLs. */
const MAX_CHARACTERS = 10_000_000;
const MAX_FILES = 10;

export type Attached = { files: FileUIPart[]; problem?: string };

/** The files as parts of a message, behind those that are there. What does not fit is left out, and named. */
export async function attach(before: FileUIPart[], added: Iterable<File>): Promise<Attached> {
  const files = [...before];
  const tooLarge: string[] = [];
  const tooMany: string[] = [];
  for (const file of added) {
    if (files.length === MAX_FILES) {
      tooMany.push(file.name);
      continue;
    }
    // Base64 makes four characters of three bytes.
    const held = files.reduce((sum, { url }) => sum + url.length, 0);
    if (held + (file.size / 3) * 4 + 200 > MAX_CHARACTERS) tooLarge.push(file.name);
    else files.push(await toPart(file));
  }
  const problems = [
    tooLarge.length > 0 && `Too large: ${tooLarge.join(', ')}. A message takes 7 MB of files.`,
    tooMany.length > 0 && `Too many: ${tooMany.join(', ')}. A message takes ${MAX_FILES} files.`,
  ].filter((problem) => problem !== false);
  return { files, ...(problems.length > 0 && { problem: problems.join(' ') }) };
}

async function toPart(file: File): Promise<FileUIPart> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const reader = new FileReader();
  reader.onload = () => resolve(String(reader.result));
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
  const mediaType = file.type || 'application/octet-stream';
  return { type: 'file', mediaType, filename: file.name, url: await promise };
}
