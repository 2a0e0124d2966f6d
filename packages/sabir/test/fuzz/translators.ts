/** Every translator, fed with recorded turns in which nearly nothing is as it was. */
import { isUtf8 } from 'node:buffer';
import type { Chunk } from '../../src/core/chunks.ts';
import type { TurnOutcome } from '../../src/core/outcome.ts';
import type { Translator, TranslatorStats } from '../../src/core/translator.ts';
import { toHistory } from '../../src/sources/agent-ops/history.ts';
import { createEventParser } from '../../src/sources/agent-ops/parse-event.ts';
import { createAgentOpsTranslator } from '../../src/sources/agent-ops/translate.ts';
import { createChunkTranslator } from '../../src/sources/ai-sdk/translate.ts';
import { createTranslator } from '../../src/sources/open-harness/translate.ts';
import { createOpenAIAgentsTranslator } from '../../src/sources/openai-agents/translate.ts';
import { createOpenCodeTranslator } from '../../src/sources/opencode/translate.ts';
import {
  agentOpsEvents,
  type Corpus,
  chunkTurns,
  harnessEvents,
  openAIEvents,
  openCodeEvents,
  type Recorded,
} from './corpus.ts';
import { toFrameBytes } from './mutate-bytes.ts';
import { mutateSequence, mutateValue } from './mutate-json.ts';
import type { Random } from './random.ts';
import { checkSame, checkTurn, InvalidOutput, type Played, type Target } from './target.ts';

type Made = Translator<unknown> & { end(outcome?: TurnOutcome, error?: unknown): Chunk[] };
type Options = Record<string, unknown>;

const OUTCOMES: readonly (TurnOutcome | undefined)[] = [
  undefined,
  ...[{ status: 'finished', usage: { inputTokens: 1 } } as const, { status: 'paused' } as const],
  ...[{ status: 'stopped', reason: 'asked' } as const, { status: 'lost' } as const],
  { status: 'failed', code: 'run-failed', message: 'no' },
];

function refusedBy({ unknown, malformed }: TranslatorStats): number {
  const counts = [...Object.values(unknown), ...Object.values(malformed)];
  return counts.reduce((sum, count) => sum + count, 0);
}

/** A turn, whole and closed, that every client takes; nothing more comes of it. */
function playTurn(translator: Made, frames: unknown[], random: Random): Chunk[] {
  const chunks: Chunk[] = [];
  for (const frame of frames) {
    const given = translator.push(frame);
    if (given.length > 0) chunks.push(...given);
  }
  const error = random.chance(0.2) ? mutateValue({ message: 'no' }, toMutation(random)) : undefined;
  chunks.push(...translator.end(random.pick(OUTCOMES), error));
  if (!translator.ended) throw new InvalidOutput('the turn has not ended');
  checkSame(translator.push(frames[0]), [], 'something came after the end');
  checkSame(translator.end(), [], 'it ended twice');
  return chunks;
}

const toMutation = (random: Random) => ({ random, words: ['x'], isLive: true });

function translatorTarget(
  name: string,
  corpus: () => Corpus<Recorded>,
  create: (options: Options, random: Random) => Made,
  { isLive, weight }: { isLive: boolean; weight: number },
): Target {
  return {
    name,
    weight,
    play(random): Played {
      const { sequences, words } = corpus();
      const { steps, options } = random.pick(sequences);
      const other = random.pick(sequences).steps;
      const mutation = { random, words, isLive };
      const { frames, malformed } = mutateSequence(steps, other, mutation);
      const translator = create(options, random);
      const chunks = playTurn(translator, frames, random);
      checkTurn(chunks, random);
      return {
        malformed,
        sound: Math.max(0, frames.length - malformed),
        refused: refusedBy(translator.stats),
        out: chunks.length,
      };
    },
  };
}

/** Frames of a socket: bytes that are read as the upstream reads them, then translated. */
function agentOpsTarget(
  name: string,
  toOptions: (given: Options, random: Random) => Options,
): Target {
  return {
    name,
    weight: 2,
    play(random) {
      const { sequences, words } = agentOpsEvents();
      const { steps, options } = random.pick(sequences);
      const other = random.pick(sequences).steps;
      const { frames, malformed } = mutateSequence(steps, other, { random, words });
      const parse = createEventParser(100_000);
      let hurt = 0;
      const events = frames.map((frame) => {
        const { bytes, isHurt } = toFrameBytes(frame, random);
        if (isHurt) hurt++;
        return parseLikeJson(parse, bytes);
      });
      const translator = createAgentOpsTranslator(toOptions(options, random)) as Made;
      const chunks = playTurn(translator, events, random);
      checkTurn(chunks, random);
      return {
        malformed: malformed + hurt,
        sound: Math.max(0, frames.length - malformed - hurt),
        refused: refusedBy(translator.stats),
        out: chunks.length,
      };
    },
  };
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * The short way round the parser must lead where the parser itself leads. Bytes that are no UTF-8 come as text: in a
 * text frame they end the connection, and the socket decodes binary frames before the parser.
 */
function parseLikeJson(parse: (data: string | Uint8Array) => unknown, bytes: Uint8Array): unknown {
  const event = parse(isUtf8(bytes) ? bytes : decoder.decode(bytes));
  let expected: unknown;
  try {
    expected = JSON.parse(decoder.decode(bytes));
  } catch {
    if (typeof event !== 'string') throw new InvalidOutput('an event was read out of no JSON');
    return event;
  }
  // Too deep to be compared.
  if (bytes.length < 6_000) checkSame(event, expected, 'an event was read as another');
  return event;
}

const IDS = ['t', 'u', 'p', 'q', 'm'];

const chunkTurnsAsRecorded = (): Corpus<Recorded> => {
  const { sequences, words } = chunkTurns();
  recordedChunks ??= { words, sequences: sequences.map((steps) => ({ options: {}, steps })) };
  return recordedChunks;
};
let recordedChunks: Corpus<Recorded> | undefined;

const history: Target = {
  name: 'agent-ops history',
  play(random) {
    const { sequences, words } = agentOpsEvents();
    const messages = sequences
      .flatMap(({ steps }) => steps.slice(0, 3))
      .flatMap((step) => {
        const { data } = Object(step) as { data?: { role?: unknown } };
        return data?.role ? [data] : [];
      });
    const some = Array.from({ length: 6 }, () => random.pick(messages));
    const { frames, malformed } = mutateSequence(some, messages, { random, words });
    const busy = mutateValue({ runnerBusy: true, promptsQueued: 1 }, { random, words });
    const shown = toHistory(frames, Object(busy) as object);
    JSON.stringify(shown.map(({ id, role }) => [id, role]));
    return {
      malformed,
      sound: Math.max(0, frames.length - malformed),
      refused: 0,
      out: shown.length,
    };
  },
};

export const TRANSLATORS: Target[] = [
  {
    ...translatorTarget(
      'chunk translator',
      chunkTurnsAsRecorded,
      (options) => createChunkTranslator({ messageId: 'm', ...options }),
      { isLive: true, weight: 2 },
    ),
  },
  translatorTarget(
    'open-harness translator',
    harnessEvents,
    (options) => createTranslator({ messageId: 'm', ...options }) as Made,
    { isLive: true, weight: 2 },
  ),
  agentOpsTarget('agent-ops translator', (options, random) => ({
    ...options,
    ...(random.chance(0.5) && { dialect: random.pick(['auto', 'v2', 'snapshot']) }),
    ...(random.chance(0.3) && { channel: { channelType: 'web', channelId: 'default' } }),
    ...(random.chance(0.3) && { turnId: random.pick(IDS) }),
    ...(random.chance(0.3) && { approvals: true }),
  })),
  translatorTarget(
    'openai-agents translator',
    openAIEvents,
    (options, random) =>
      createOpenAIAgentsTranslator({
        messageId: 'm',
        approvals: random.chance(0.5),
        ...options,
      }) as Made,
    { isLive: true, weight: 2 },
  ),
  translatorTarget(
    'opencode translator',
    openCodeEvents,
    (options) => createOpenCodeTranslator({ messageId: 'm', ...options }),
    { isLive: false, weight: 2 },
  ),
  history,
];
