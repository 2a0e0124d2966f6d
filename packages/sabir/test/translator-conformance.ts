/**
 * What every translator is held to, on every fixture. A fixture is a pair of JSON lines,
 * `name.events.jsonl` → `name.chunks.jsonl`. The first line of the events may be `{ "options" }`;
 * `{ "end": outcome }` stands for a call of `end()`, and `error` beside it for what a run threw.
 *
 * With `"options": { "approvals": true }` there are chunks that older clients do not have: each gets
 * what the gateway would send it. Without, every client is to take the chunks as they are.
 */
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { AiSdkMajor, Chunk } from '../src/core/chunks.ts';
import { createDowngrade } from '../src/core/downgrade.ts';
import { foldChunks } from '../src/core/fold.ts';
import type { TurnOutcome } from '../src/core/outcome.ts';
import type { Translator } from '../src/core/translator.ts';
import { verifyChunks } from '../src/core/verify.ts';
import { comparable } from './comparable.ts';
import { readJsonl, readOrWriteJsonl } from './jsonl.ts';
import { CLIENTS, runClient } from './real-clients.ts';

type Played = Translator<unknown> & { end(outcome?: TurnOutcome, error?: unknown): Chunk[] };
type Create = (options: Record<string, unknown>) => Played;
type Fixture = { name: string; options: Record<string, unknown>; steps: unknown[] };

function loadFixtures(folder: URL): Fixture[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith('.events.jsonl'))
    .map((file) => {
      const [first, ...rest] = readJsonl(new URL(file, folder));
      const options = (first as { options?: Record<string, unknown> } | undefined)?.options;
      const steps = options ? rest : first === undefined ? [] : [first, ...rest];
      return { name: file.replace('.events.jsonl', ''), options: options ?? {}, steps };
    });
}

/** Plays the steps, and ends the turn if they did not. */
function play(create: Create, { options }: Fixture, steps: unknown[]) {
  const translator = create({ messageId: 'm', ...options });
  const chunks: Chunk[] = [];
  for (const step of steps) {
    const { end, error } = (step ?? {}) as { end?: TurnOutcome; error?: unknown };
    chunks.push(...(end ? translator.end(end, error) : translator.push(step)));
  }
  chunks.push(...translator.end());
  return { chunks, translator };
}

/** What a client is sent: all of it, unless the fixture has chunks that it may not know. */
function sentTo(client: AiSdkMajor | 'portable', { options }: Fixture, chunks: Chunk[]): Chunk[] {
  return options.approvals === true ? chunks.flatMap(createDowngrade(client)) : chunks;
}

export function describeTranslator(source: string, folder: URL, create: Create): void {
  const fixtures = loadFixtures(folder);

  describe.each(fixtures)(`${source} fixture $name`, (fixture) => {
    const { chunks } = play(create, fixture, fixture.steps);

    it('gives the recorded chunks', () => {
      const expected = readOrWriteJsonl(new URL(`${fixture.name}.chunks.jsonl`, folder), chunks);
      expect(JSON.parse(JSON.stringify(chunks))).toEqual(expected);
    });

    it('keeps the ordering law for every AI SDK major', () => {
      expect(verifyChunks(sentTo('portable', fixture, chunks))).toEqual([]);
      for (const aiSdk of [5, 6, 7] as const) {
        expect(verifyChunks(sentTo(aiSdk, fixture, chunks), { aiSdk })).toEqual([]);
      }
    });

    it.each(
      CLIENTS.flatMap(({ name, major }) => [
        { client: name, major, via: 'sse' as const },
        { client: name, major, via: 'in-process' as const },
      ]),
    )('is folded by $client ($via) as foldChunks folds it', async ({ client, major, via }) => {
      const sent = sentTo(major, fixture, chunks);
      const { status, error, message } = await runClient(client, sent, { via });
      const failure = chunks.find((chunk) => chunk.type === 'error');
      expect(error?.message).toBe(failure?.errorText);
      expect(status).toBe(failure ? 'error' : 'ready');
      expect(comparable(message)).toEqual(comparable(foldChunks(sent)));
    });

    it('closes every part wherever it is cut', () => {
      for (let length = 0; length <= fixture.steps.length; length++) {
        const cut = play(create, fixture, fixture.steps.slice(0, length));
        const sent = sentTo('portable', fixture, cut.chunks);
        expect(verifyChunks(sent), `cut after ${length}`).toEqual([]);
        expect(cut.translator.ended).toBe(true);
        expect(cut.translator.push(fixture.steps[0])).toEqual([]);
        expect(cut.translator.end({ status: 'failed' })).toEqual([]);
      }
    });

    it('gives the same when run twice', () => {
      expect(play(create, fixture, fixture.steps).chunks).toEqual(chunks);
    });
  });
}
