/**
 * What a scripted agent does, as the events that OpenAI's Responses API would stream for it. The
 * SDK's own model class reads them: everything but the network is real.
 */
import { type Pace, toPieces } from '../flow/pace.ts';
import type { GuideEntry } from './guide.ts';
import type { Beat, Passage } from './script.ts';

export type ResponseEvent = { type: string } & Record<string, unknown>;

const CHARACTERS_PER_TOKEN = 4;
const STAMP = 'T0';

/** For people: anything else that a model throws may quote what was said. */
export class ScriptedFailure extends Error {}

export async function* writeResponse(
  beats: readonly Beat[],
  { pace, signal, readCharacters }: { pace: Pace; signal: AbortSignal; readCharacters: number },
): AsyncGenerator<ResponseEvent> {
  const id = makeId('resp');
  const output: object[] = [];
  let written = 0;
  let output_index = 0;

  /** Piece by piece, as they are due; gives back the whole text. */
  async function* write(
    pieces: readonly string[],
    toEvent: (delta: string) => ResponseEvent,
  ): AsyncGenerator<ResponseEvent, string> {
    let whole = '';
    for (const piece of pieces) {
      await pace.beforePiece(piece, signal);
      // A stamp gets its time at the very last moment, when the wait before it is over.
      const delta = piece === STAMP ? `T${Date.now()} ` : piece;
      whole += delta;
      yield toEvent(delta);
    }
    written += whole.length;
    return whole;
  }

  function* begin(item: object): Generator<ResponseEvent> {
    yield { type: 'response.output_item.added', output_index, item };
  }
  function* end(item: object): Generator<ResponseEvent> {
    output.push(item);
    yield { type: 'response.output_item.done', output_index, item };
    output_index++;
  }

  async function* think(pieces: string[]): AsyncGenerator<ResponseEvent> {
    const item = { id: makeId('rs'), type: 'reasoning' };
    const place = { output_index, item_id: item.id, summary_index: 0 };
    yield* begin({ ...item, summary: [] });
    const text = yield* write(pieces, (delta) => ({
      type: 'response.reasoning_summary_text.delta',
      ...place,
      delta,
    }));
    yield* end({ ...item, summary: [{ type: 'summary_text', text }] });
  }

  async function* say(passages: ReadonlyArray<Passage & { pieces: string[] }>) {
    const item = { id: makeId('msg'), type: 'message', role: 'assistant' };
    const place = { output_index, item_id: item.id, content_index: 0 };
    const annotations: object[] = [];
    let text = '';
    yield* begin({ ...item, status: 'in_progress', content: [] });
    for (const { pieces, source } of passages) {
      const start = text.length;
      text += yield* write(pieces, (delta) => ({
        type: 'response.output_text.delta',
        ...place,
        delta,
      }));
      if (!source) continue;
      const annotation = toCitation(source, start, text.trimEnd().length);
      const annotation_index = annotations.push(annotation) - 1;
      const note = { annotation_index, annotation };
      yield { type: 'response.output_text.annotation.added', ...place, ...note };
    }
    const part = { type: 'output_text', text, annotations };
    yield* end({ ...item, status: 'completed', content: [part] });
  }

  async function* call(name: string, input: unknown): AsyncGenerator<ResponseEvent> {
    const item = { id: makeId('fc'), type: 'function_call', call_id: makeId('call'), name };
    const place = { output_index, item_id: item.id };
    yield* begin({ ...item, arguments: '', status: 'in_progress' });
    const text = yield* write(toPieces(JSON.stringify(input)), (delta) => ({
      type: 'response.function_call_arguments.delta',
      ...place,
      delta,
    }));
    yield* end({ ...item, arguments: text, status: 'completed' });
  }

  const stamps = (words: number) => Array.from({ length: words }, () => STAMP);

  yield { type: 'response.created', response: { id, object: 'response', status: 'in_progress' } };
  // The wait before a model's first token is the longest of all.
  await pace.wait(380, signal);
  for (const beat of beats) {
    if ('think' in beat) yield* think(toPieces(beat.think));
    else if ('say' in beat) yield* say(toPassages(beat.say));
    else if ('call' in beat) yield* call(beat.call, beat.input);
    else if ('fail' in beat) throw new ScriptedFailure(beat.fail);
    else if (beat.stamp === 'think') yield* think(stamps(beat.words));
    else yield* say([{ text: '', pieces: stamps(beat.words) }]);
  }
  const input_tokens = Math.ceil(readCharacters / CHARACTERS_PER_TOKEN);
  const output_tokens = Math.ceil(written / CHARACTERS_PER_TOKEN);
  const usage = {
    input_tokens,
    output_tokens,
    total_tokens: input_tokens + output_tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  };
  const response = { id, object: 'response', status: 'completed', output, usage };
  yield { type: 'response.completed', response };
}

function toPassages(said: string | Passage[]): Array<Passage & { pieces: string[] }> {
  const passages = typeof said === 'string' ? [{ text: said }] : said;
  return passages.map((passage) => ({ ...passage, pieces: toPieces(passage.text) }));
}

function toCitation(source: GuideEntry, start_index: number, end_index: number): object {
  const { id, title } = source;
  if ('url' in source) {
    return { type: 'url_citation', url: source.url, title, start_index, end_index };
  }
  return {
    type: 'file_citation',
    file_id: `file-${id}`,
    filename: source.filename,
    index: end_index,
  };
}

function makeId(kind: string): string {
  return `${kind}_${crypto.randomUUID().replaceAll('-', '')}`;
}
