import type { Channel } from '../core/translator.ts';

/** One request on its way through. */
export type Visit = {
  request: Request;
  url: URL;
  requestId: string;
  startedAt: number;
  /** Where it comes from, if that is known. */
  address: string | undefined;
};

/**
 * Which client this is; where nothing is said, only what all of them parse is sent. Of the stock clients only 6.0.9 names
 * its version by itself, as `user-agent`, which some browsers replace with their own.
 */
export function clientOf({ headers }: Request, url: URL): 5 | 6 | 7 | 'portable' {
  const [, named] = /\bai-sdk\/(\d+)\./.exec(headers.get('user-agent') ?? '') ?? [];
  const said = url.searchParams.get('aiSdk') ?? headers.get('x-sabir-ai-sdk') ?? named;
  return said === '5' ? 5 : said === '6' ? 6 : said === '7' ? 7 : 'portable';
}

export function channelOf({ searchParams }: URL): Channel | undefined {
  const channelType = searchParams.get('channelType');
  const channelId = searchParams.get('channelId');
  if (!channelType && !channelId) return undefined;
  return { channelType: channelType || 'web', channelId: channelId || 'default' };
}

export type Cursor = { turnId: string; seq: number };

/** From the header; `EventSource` on a fresh page can only use the address. */
export function cursorOf({ request, url }: Visit): Cursor | undefined {
  const said = request.headers.get('last-event-id') ?? url.searchParams.get('lastEventId');
  return said ? (parseCursor(said) ?? { turnId: '', seq: 0 }) : undefined;
}

/** `turnId:seq`; undefined if it is something else. */
export function parseCursor(said: string): Cursor | undefined {
  const at = said.lastIndexOf(':');
  const seq = Number(said.slice(at + 1));
  if (at < 1 || !Number.isSafeInteger(seq) || seq < 0) return undefined;
  return { turnId: said.slice(0, at), seq };
}
