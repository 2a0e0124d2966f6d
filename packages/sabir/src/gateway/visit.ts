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

/** Which client this is; where nothing is said, only what all of them parse is sent. */
export function clientOf(request: Request, url: URL): 5 | 6 | 7 | 'portable' {
  const said = url.searchParams.get('aiSdk') ?? request.headers.get('x-sabir-ai-sdk');
  return said === '5' ? 5 : said === '6' ? 6 : said === '7' ? 7 : 'portable';
}

export function channelOf({ searchParams }: URL): Channel | undefined {
  const channelType = searchParams.get('channelType');
  const channelId = searchParams.get('channelId');
  if (!channelType && !channelId) return undefined;
  return { channelType: channelType || 'web', channelId: channelId || 'default' };
}

/** `turnId:seq`, from the header; `EventSource` on a fresh page can only use the address. */
export function cursorOf({ request, url }: Visit): { turnId: string; seq: number } | undefined {
  const said = request.headers.get('last-event-id') ?? url.searchParams.get('lastEventId');
  if (!said) return undefined;
  const at = said.lastIndexOf(':');
  const seq = Number(said.slice(at + 1));
  if (at < 1 || !Number.isSafeInteger(seq) || seq < 0) return { turnId: '', seq: 0 };
  return { turnId: said.slice(0, at), seq };
}
