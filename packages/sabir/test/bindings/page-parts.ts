import type { UIMessage } from '../../src/core/message.ts';

/** The chat that the page's address names. */
export const CHAT = new URLSearchParams(location.search).get('chat') ?? '';
export const OTHER_CHAT = `${CHAT}-other`;

export function textOf({ parts }: Pick<UIMessage, 'parts'>): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}
