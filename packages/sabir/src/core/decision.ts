import { isObject } from './loose.ts';

/** What a person decided about a tool call that asked to be approved. */
export type Decision = { readonly approved: boolean; readonly reason?: string };

const YES = /^\s*(approved?|allow(ed)?|yes|ok|true)\s*[.!]?\s*$/i;

/** What an answer to an approval's question means. Whatever is no clear yes is a no. */
export function toDecision(answer: unknown): Decision {
  if (isObject(answer)) {
    const { approved, reason } = answer;
    return { approved: approved === true, ...(typeof reason === 'string' && reason && { reason }) };
  }
  if (typeof answer === 'boolean') return { approved: answer };
  if (typeof answer !== 'string') return { approved: false };
  if (YES.test(answer)) return { approved: true };
  // A sentence instead of a choice is the reason for a no.
  return {
    approved: false,
    ...(!/^\s*(deny|denied|no|false)?\s*[.!]?\s*$/i.test(answer) && { reason: answer.trim() }),
  };
}
