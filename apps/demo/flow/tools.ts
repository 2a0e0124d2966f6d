import { NOTES, type Note } from './notes.ts';
import type { Pace } from './pace.ts';

export type Tool = {
  name: string;
  description: string;
  /** JSON schema of the input, as model providers expect it. */
  parameters: Record<string, unknown>;
  run(input: unknown, context: { pace: Pace; signal: AbortSignal }): Promise<unknown>;
};

const MAX_HITS = 3;

const searchNotes: Tool = {
  name: 'search_notes',
  description: 'Searches the reference notes and returns the best matches.',
  parameters: {
    type: 'object',
    properties: { query: { type: 'string', description: 'A few keywords' } },
    required: ['query'],
    additionalProperties: false,
  },
  async run(input, { pace, signal }) {
    const query = readText(input, 'query');
    await pace.wait(650, signal);
    const hits = rank(query).slice(0, MAX_HITS);
    return { query, hits: hits.map(({ id, title, text }) => ({ id, title, text })) };
  },
};

const openSource: Tool = {
  name: 'open_source',
  description: 'Opens the full source behind a note, by the id of the note.',
  parameters: {
    type: 'object',
    properties: { id: { type: 'string', description: 'The id of a note' } },
    required: ['id'],
    additionalProperties: false,
  },
  async run(input, { pace, signal }) {
    const id = readText(input, 'id');
    await pace.wait(900, signal);
    const note = NOTES.find((candidate) => candidate.id === id);
    if (!note) throw new Error(`There is no note called “${id}”.`);
    if (!note.source) throw new Error(`The archive that holds “${id}” did not answer in time.`);
    return { id, title: note.title, source: note.source };
  },
};

export const RESEARCH_TOOLS: readonly Tool[] = [searchNotes, openSource];

/** Counts the words a note shares with the query; a hit in the title counts three times. */
function rank(query: string): Note[] {
  const wanted = toWords(query);
  const scored = NOTES.map((note) => {
    const title = toWords(note.title);
    const text = toWords(note.text);
    let score = 0;
    for (const word of wanted) score += (title.has(word) ? 3 : 0) + (text.has(word) ? 1 : 0);
    return { note, score };
  });
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ note }) => note);
}

function toWords(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\d]{3,}/gu) ?? []);
}

function readText(input: unknown, key: string): string {
  const value = (input as Record<string, unknown> | null)?.[key];
  if (typeof value === 'string' && value.trim()) return value;
  throw new Error(`The tool needs a text called “${key}”.`);
}
