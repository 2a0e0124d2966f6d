/** The turns that clients are measured on: recorded ones, and long ones made up. */
import { readdirSync, readFileSync } from 'node:fs';
import { type Chunk, createDowngrade } from 'sabir';

const FIXTURES = new URL('../../packages/sabir/test/fixtures/', import.meta.url);
const WORDS = Array.from({ length: 64 }, (_, i) => `word${i} `);

const wordAt = (i: number) => WORDS[i % WORDS.length] as string;

/**
 * Of every fixture that is a whole turn: others end without an end, and no client waits for it. As the
 * gateway sends it to AI SDK 6, which refuses some chunks of 7; 7 takes both.
 */
export function recordedTurns(): Chunk[][] {
  return readdirSync(FIXTURES, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.chunks.jsonl'))
    .sort()
    .map((file) => readFileSync(new URL(file, FIXTURES), 'utf8').split('\n').filter(Boolean))
    .map((lines) => lines.map((line) => JSON.parse(line) as Chunk))
    .filter((chunks) => chunks[0]?.type === 'start' && chunks.at(-1)?.type === 'finish')
    .map((chunks) => chunks.flatMap(createDowngrade(6)));
}

function turn(content: Chunk[]): Chunk[] {
  return [{ type: 'start', messageId: 'm1' }, ...content, { type: 'finish', finishReason: 'stop' }];
}

/** One text of this many deltas. */
export function textTurn(deltas: number): Chunk[] {
  return turn([
    { type: 'text-start', id: 't1' },
    ...Array.from(
      { length: deltas },
      (_, i): Chunk => ({ type: 'text-delta', id: 't1', delta: wordAt(i) }),
    ),
    { type: 'text-end', id: 't1' },
  ]);
}

/** The characters of all its deltas. */
export function lengthOf(chunks: Chunk[]): number {
  return chunks.reduce((sum, chunk) => sum + ('delta' in chunk ? chunk.delta.length : 0), 0);
}

const input = (n: number) => ({ query: `term ${n}`, limit: 10 });
const output = { hits: [{ title: 'One', url: 'https://example.test/1' }, { title: 'Two' }] };

function toolCall(n: number): Chunk[] {
  const toolCallId = `call-${n}`;
  return [
    { type: 'tool-input-available', toolCallId, toolName: 'search', input: input(n) },
    { type: 'tool-output-available', toolCallId, output },
  ];
}

/** This many calls, each asked and answered. */
export function toolTurn(calls: number): Chunk[] {
  return turn(Array.from({ length: calls }, (_, n) => toolCall(n)).flat());
}

/** A long turn as agents write them: steps that think, call tools and write. At least `chunks`. */
export function agentTurn(chunks: number): Chunk[] {
  const content: Chunk[] = [];
  for (let step = 0; content.length < chunks; step++) {
    const id = `part-${step}`;
    content.push({ type: 'start-step' }, { type: 'reasoning-start', id });
    for (let i = 0; i < 20; i++) {
      content.push({ type: 'reasoning-delta', id, delta: wordAt(i) });
    }
    content.push({ type: 'reasoning-end', id }, ...toolCall(step), { type: 'text-start', id });
    for (let i = 0; i < 70; i++) content.push({ type: 'text-delta', id, delta: wordAt(i) });
    content.push({ type: 'text-end', id }, { type: 'finish-step' });
  }
  return turn(content);
}

/** The bytes of a delta of a tool's input: 8,000 of them make 100 KB. */
const INPUT_DELTA = 12.5;

/** One call whose input, a file being edited, streams in as this many deltas. */
export function inputTurn(deltas: number): Chunk[] {
  const edits: Array<{ line: number; text: string }> = [];
  const value = { path: 'src/index.ts', edits };
  const length = deltas * INPUT_DELTA;
  for (let size = 0; size < length; size += JSON.stringify(edits.at(-1)).length + 1) {
    edits.push({
      line: edits.length,
      text: `\tconst "${wordAt(edits.length)}" = ${'é'.repeat(40)};`,
    });
  }
  const json = JSON.stringify(value);
  const toolCallId = 'call-1';
  const toolName = 'edit';
  return turn([
    { type: 'tool-input-start', toolCallId, toolName },
    ...Array.from({ length: deltas }, (_, i): Chunk => {
      const at = (n: number) => Math.round((json.length * n) / deltas);
      const inputTextDelta = json.slice(at(i), at(i + 1));
      return { type: 'tool-input-delta', toolCallId, inputTextDelta };
    }),
    { type: 'tool-input-available', toolCallId, toolName, input: value },
    { type: 'tool-output-available', toolCallId, output: 'ok' },
  ]);
}
