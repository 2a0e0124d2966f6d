/**
 * What the agent says to a prompt. The prompt names a number, and the number decides everything: so
 * the agent's process and whoever checks what became of its words know the same, without a word
 * between them.
 */
import type { Chunk } from '../../src/core/chunks.ts';
import type { LooseDelta } from '../../src/turns/agent.ts';
import { createDraws, type Random } from './random.ts';

type Said = Chunk | LooseDelta;
type Step =
  | { kind: 'chunk'; chunk: Said; pauseMs: number }
  /** Goes on with the words of whoever answers. */
  | { kind: 'ask'; questionId: string; text: string; pauseMs: number };

type ScriptKind = 'words' | 'thoughts' | 'tools' | 'question' | 'everything';

export type Script = { kind: ScriptKind; steps: Step[] };

/** What is left of a message for comparing: its words, its calls and its questions, in order. */
export type TruePart =
  | { type: 'text' | 'reasoning'; text: string }
  | { type: 'tool'; callId: string; toolName: string; input: unknown; output: unknown }
  | { type: 'question'; questionId: string; answer: unknown };

const KINDS = { words: 4, thoughts: 2, tools: 3, question: 2, everything: 2 } as const;

const PIECES = [
  ...[
    'harbour ',
    'wind',
    ' the ',
    'a',
    'Oran, ',
    '\n',
    '\n\n',
    '"quoted" ',
    '\\',
    '{"a":[1,',
    ': ',
  ],
  ...[
    'é',
    'ñandú ',
    'ß',
    'שלום ',
    'صابر ',
    '漢字',
    'データ',
    '한국어 ',
    '\u2028',
    '\u00a0',
    '\r\n',
  ],
  ...['🚀', '👩‍👩‍👧‍👦', '🇩🇿', '𝒮𝒶𝒷𝒾𝓇', '𠮷野家', 'data: [DONE]\n\n', 'id: 7\n', '</script>'],
];

export const promptOf = (turn: number, scriptSeed: number) => `turn ${turn} script ${scriptSeed}`;

export function readPrompt(text: string): { turn: number; scriptSeed: number } | undefined {
  const found = /^turn (\d+) script (\d+)$/.exec(text);
  return found ? { turn: Number(found[1]), scriptSeed: Number(found[2]) } : undefined;
}

export function scriptOf(scriptSeed: number): Script {
  const random = createDraws(scriptSeed);
  const kind = random.weighted(KINDS);
  const said: (Said | { ask: string })[] = [{ type: 'start-step' }];
  let calls = 0;
  const sections: Record<ScriptKind, string[]> = {
    words: ['text'],
    thoughts: ['reasoning', 'text', ...(random.is(0.5) ? ['reasoning', 'text'] : [])],
    tools: ['text', 'tool', 'text', ...(random.is(0.5) ? ['tool', 'tool', 'text'] : [])],
    question: ['text', 'ask', 'text'],
    everything: ['reasoning', 'text', 'tool', 'step', 'text', 'ask', 'reasoning', 'tool', 'text'],
  };
  for (const section of sections[kind]) {
    if (section === 'text' || section === 'reasoning') {
      for (const delta of deltasOf(random)) said.push({ type: `${section}-delta`, delta });
    } else if (section === 'tool') said.push(...callOf(random, `call-${++calls}`));
    else if (section === 'step') said.push({ type: 'finish-step' }, { type: 'start-step' });
    else said.push({ ask: `question-${scriptSeed}` });
  }
  const totalMs = random.between(300, 2_000);
  const usualMs = (2 * totalMs) / said.length;
  const steps = said.map((chunk): Step => {
    // Some of it comes in one burst.
    const pauseMs = random.is(0.25) ? 0 : Math.round(random.next() * usualMs);
    if (!('ask' in chunk)) return { kind: 'chunk', chunk, pauseMs };
    return { kind: 'ask', questionId: chunk.ask, text: 'Which way?', pauseMs };
  });
  return { kind, steps };
}

/** A text in pieces: of any length, at times in the middle of a character that is two in UTF-16. */
function deltasOf(random: Random): string[] {
  const count = random.between(3, 30);
  let text = '';
  const deltas: string[] = [];
  for (let i = 0; i < count; i++) {
    const length = random.is(0.03) ? random.between(200, 800) : random.between(1, 6);
    for (let j = 0; j < length; j++) text += random.pick(PIECES);
    const end = random.is(0.2) && text.length > 1 ? text.length - 1 : text.length;
    deltas.push(text.slice(0, end));
    text = text.slice(end);
  }
  if (text) deltas.push(text);
  return deltas;
}

function callOf(random: Random, toolCallId: string): Chunk[] {
  const toolName = random.pick(['lookup', 'search', 'read_file']);
  const input = { port: random.pick(PIECES), pages: [random.between(1, 99)], deep: { is: true } };
  const chunks: Chunk[] = [{ type: 'tool-input-start', toolCallId, toolName }];
  let json = random.is(0.6) ? JSON.stringify(input) : '';
  while (json) {
    const length = random.between(1, 12);
    chunks.push({ type: 'tool-input-delta', toolCallId, inputTextDelta: json.slice(0, length) });
    json = json.slice(length);
  }
  const output = { berths: random.between(0, 9), note: random.pick(PIECES).repeat(3) };
  return [
    ...chunks,
    { type: 'tool-input-available', toolCallId, toolName, input },
    { type: 'tool-output-available', toolCallId, output },
  ];
}

/** What the agent says once it has an answer. */
export const wordsOfAnswer = (answer: unknown) => `Answered: ${String(answer)}. `;

/** The whole answer, as a message of it should read. */
export function truthOf({ steps }: Script, answer: unknown): TruePart[] {
  const parts: TruePart[] = [];
  const calls = new Map<string, Omit<Extract<TruePart, { type: 'tool' }>, 'output'>>();
  const write = (type: 'text' | 'reasoning', text: string, isNew: boolean) => {
    const last = parts.at(-1);
    if (!isNew && last?.type === type) last.text += text;
    else if (text) parts.push({ type, text });
  };
  let isStep = false;
  for (const step of steps) {
    if (step.kind === 'ask') {
      parts.push({ type: 'question', questionId: step.questionId, answer });
      write('text', wordsOfAnswer(answer), true);
      continue;
    }
    const { chunk } = step;
    if (chunk.type === 'text-delta') write('text', chunk.delta, isStep);
    else if (chunk.type === 'reasoning-delta') write('reasoning', chunk.delta, isStep);
    else if (chunk.type === 'tool-input-available') {
      const { toolCallId: callId, toolName, input } = chunk;
      calls.set(callId, { type: 'tool', callId, toolName, input });
    } else if (chunk.type === 'tool-output-available') {
      const call = calls.get(chunk.toolCallId);
      if (call) parts.push({ ...call, output: chunk.output });
    }
    isStep = chunk.type === 'start-step';
  }
  return parts;
}
