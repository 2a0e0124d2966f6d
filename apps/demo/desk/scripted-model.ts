/**
 * A model that needs no key and no network. It recites, but it is not a recording: the tools it
 * calls really run, and what it says depends on what was asked, found and allowed.
 *
 * Owns the count of attempts per message; nothing else outlives a turn.
 */
import { type Model, OpenAIResponsesModel } from '@openai/agents';
import { createPace } from '../flow/pace.ts';
import type { DeskContext } from './agents.ts';
import type { Situation, Speak } from './script.ts';
import { bookings } from './scripts/bookings.ts';
import { research } from './scripts/research.ts';
import { triage } from './scripts/triage.ts';
import { type ResponseEvent, writeResponse } from './write-response.ts';

/** The body of a request to the Responses API, as far as a script looks at it. */
type Request = { input: string | Item[]; instructions?: string; tools?: Array<{ name?: string }> };
type Item = {
  type?: string;
  role?: string;
  content?: string | Array<{ text?: string }>;
  name?: string;
  call_id?: string;
  output?: unknown;
};
type RequestOptions = { signal?: AbortSignal };

const MAX_REMEMBERED = 500;

export function createScriptedModels(speed = 1) {
  /** The answers that were begun to a message. */
  const attempts = new Map<string, string[]>();

  function countAttempt({ askedId, answerId }: DeskContext): number {
    const begun = attempts.get(askedId) ?? [];
    if (!begun.includes(answerId)) begun.push(answerId);
    attempts.delete(askedId);
    attempts.set(askedId, begun);
    for (const oldest of attempts.keys()) {
      if (attempts.size <= MAX_REMEMBERED) break;
      attempts.delete(oldest);
    }
    return begun.indexOf(answerId) + 1;
  }

  /** The SDK's own model for the Responses API, with a client that recites instead of calling. */
  return function modelFor(context: DeskContext): Model {
    const attempt = countAttempt(context);

    async function create(
      request: Request,
      options: RequestOptions = {},
    ): Promise<AsyncIterable<ResponseEvent>> {
      const signal = options.signal ?? new AbortController().signal;
      const readCharacters = JSON.stringify(request.input).length;
      const beats = speakerOf(request)(toSituation(request, attempt));
      return writeResponse(beats, { pace: createPace(speed), signal, readCharacters });
    }

    const client = { baseURL: 'http://scripted.invalid/v1', responses: { create } };
    return new OpenAIResponsesModel(client as never, 'scripted model');
  };
}

/** An agent is known by what it can do. */
function speakerOf({ tools = [] }: Request): Speak {
  const has = (tool: string) => tools.some(({ name }) => name === tool);
  if (has('search_guide')) return research;
  return has('find_bookings') ? bookings : triage;
}

function toSituation({ input }: Request, attempt: number): Situation {
  const items: Item[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  const asked = items.findLastIndex(({ role }) => role === 'user');
  const names = new Map(items.map(({ call_id, name }) => [name && call_id, name]));
  return {
    message: textOf(items[asked]?.content),
    earlier: items.slice(0, Math.max(asked, 0)).filter(({ role }) => role === 'user').length,
    answers: items.slice(asked + 1).flatMap(({ type, call_id, output }) => {
      const name = names.get(call_id);
      return type === 'function_call_output' && name ? [{ name, text: textOf(output) }] : [];
    }),
    attempt,
  };
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { text?: string }) => part.text ?? '').join('');
}
