/**
 * A model that needs no key and no network. It recites, but it is not a recording: the tools it
 * calls really run, what it says depends on what was asked and found, and it can fail.
 *
 * Owns the count of attempts per message; nothing else outlives a turn.
 */
import type { Model, ModelEvent, ModelRequest } from './model.ts';
import { createPace, toPieces } from './pace.ts';
import type { Beat } from './script.ts';
import { findTopic } from './topics.ts';

const CHARACTERS_PER_TOKEN = 4;
const MAX_REMEMBERED = 500;

export function createScriptedModel({ speed = 1 }: { speed?: number } = {}): Model {
  const attempts = new Map<string, number>();

  const countAttempt = ({ agent, person, messages }: ModelRequest): number => {
    const isNewRun = agent === 'researcher' && !messages.some(isOwnTurn);
    const attempt = (attempts.get(person.messageId) ?? 0) + (isNewRun ? 1 : 0);
    attempts.delete(person.messageId);
    attempts.set(person.messageId, attempt);
    for (const oldest of attempts.keys()) {
      if (attempts.size <= MAX_REMEMBERED) break;
      attempts.delete(oldest);
    }
    return attempt;
  };

  return {
    name: 'scripted model',
    async *stream(request) {
      const { agent, person, messages, signal } = request;
      const script = findTopic(person.message).write(person, countAttempt(request));
      const turn = script[agent][messages.filter(isOwnTurn).length];
      const answers = messages.flatMap((message) => (message.role === 'tool' ? message.text : []));
      const pace = createPace(speed);
      let written = 0;
      // The wait before a model's first token is the longest of all.
      await pace.wait(380, signal);
      for (const beat of turn?.(answers) ?? []) {
        for (const event of toEvents(beat)) {
          if (event.type === 'thinking' || event.type === 'text') {
            await pace.beforePiece(event.text, signal);
            written += event.text.length;
          }
          yield refresh(event);
        }
      }
      const read = messages.reduce((sum, message) => sum + message.text.length, 0);
      const inputTokens = Math.ceil((read + request.system.length) / CHARACTERS_PER_TOKEN);
      const outputTokens = Math.ceil(written / CHARACTERS_PER_TOKEN);
      yield { type: 'usage', inputTokens, outputTokens, costUsd: 0 };
    },
  };
}

/** Earlier answers of the chat are in the transcript too; only this run's turns carry `toolCalls`. */
function isOwnTurn(message: ModelRequest['messages'][number]): boolean {
  return message.role === 'assistant' && message.toolCalls !== undefined;
}

const STAMP = 'T0';

function* toEvents(beat: Beat): Generator<ModelEvent> {
  if ('think' in beat) {
    for (const text of toPieces(beat.think)) yield { type: 'thinking', text };
  } else if ('say' in beat) {
    for (const text of toPieces(beat.say)) yield { type: 'text', text };
  } else if ('stamp' in beat) {
    for (let word = 0; word < beat.words; word += 1) yield { type: beat.stamp, text: STAMP };
  } else if ('call' in beat) {
    yield { type: 'tool-call', id: crypto.randomUUID(), name: beat.call, input: beat.input };
  } else {
    throw new Error(beat.fail);
  }
}

/** A stamp gets its time at the very last moment, when the wait before it is over. */
function refresh(event: ModelEvent): ModelEvent {
  const isStamp = (event.type === 'text' || event.type === 'thinking') && event.text === STAMP;
  return isStamp ? { ...event, text: `T${Date.now()} ` } : event;
}
