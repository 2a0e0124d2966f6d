import { FILE_REFUSED, SabirError } from './errors.ts';

/**
 * Whether the agent may be given this address of a file. The process that fetches it does so with the rights of its own
 * machine: `file:` reads that machine's disk, `http:` reaches its network.
 */
export type FileUrls = (url: URL) => boolean;

/** A file that comes whole, as `data:`, is always given to the agent. */
export function allowsFile(url: string, fileUrls: FileUrls = () => false): boolean {
  const address = URL.parse(url);
  return address !== null && (address.protocol === 'data:' || fileUrls(address));
}

/** Throws if one of a prompt's files may not be given to the agent. */
export function checkFiles(files: readonly { url: string }[], fileUrls?: FileUrls): void {
  if (!files.every(({ url }) => allowsFile(url, fileUrls))) throw new SabirError(FILE_REFUSED);
}
