/** The rows of the comparison: what a run says, the run that says it, and how to see it was kept. */
import { isDeepStrictEqual } from 'node:util';
import type { Exchange, Played } from './play.ts';
import {
  answersOf,
  callEndsAs,
  callsOf,
  chunksOf,
  code,
  count,
  countBeforeText,
  endsWithError,
  type Finding,
  finishesAs,
  howItThrew,
  partsOf,
  partsOfType,
  textOfDeltas,
} from './probes.ts';
import * as runs from './scenarios.ts';

export type Feature = {
  what: string;
  probe: (played: Played) => Finding;
};

/** Of the first run, which for most is the only one. */
const ofRun =
  (probe: (exchange: Exchange) => Finding) =>
  ({ first }: Played): Finding =>
    probe(first);

/** Of what follows on the answer to an approval. */
const ofAnswer =
  (probe: (exchange: Exchange) => Finding) =>
  ({ last }: Played): Finding =>
    probe(last);

function textStreams(exchange: Exchange): Finding {
  const deltas = chunksOf(exchange, 'text-delta');
  const isWhole = textOfDeltas(deltas) === runs.ANSWER;
  return { keeps: deltas.length > 1 && isWhole, says: count(deltas.length, 'delta') };
}

function argumentsStream(exchange: Exchange): Finding {
  const deltas = chunksOf(exchange, 'tool-input-delta');
  const isWhole = textOfDeltas(deltas) === JSON.stringify(runs.CITY);
  return { keeps: deltas.length > 1 && isWhole, says: count(deltas.length, 'delta') };
}

function callHasOutput({ client }: Exchange): Finding {
  const [call] = callsOf(client.message);
  const isKept = isDeepStrictEqual(call?.input, runs.CITY) && call?.output === runs.WEATHER;
  return { keeps: isKept, says: code(call?.state ?? 'no call') };
}

function eachCallHasItsOutput({ client }: Exchange): Finding {
  const own = callsOf(client.message).filter(
    ({ input, output }) => output === `Sunny in ${(input as { city?: string }).city}.`,
  );
  return { keeps: own.length === 2, says: `${own.length} of 2` };
}

function eachResponseIsAStep(exchange: Exchange): Finding {
  const steps = partsOfType(exchange, 'step-start').length;
  return { keeps: steps === 2, says: `${count(steps, 'step')} for 2 responses` };
}

function imageIsAFile(exchange: Exchange): Finding {
  const isFile = partsOfType(exchange, 'file').some(({ url }) => url === runs.IMAGE);
  const isInOutput = callsOf(exchange.client.message).some(({ output }) =>
    JSON.stringify(output ?? '').includes(runs.IMAGE),
  );
  const elsewhere = isInOutput ? "only in the tool's output" : 'gone';
  return { keeps: isFile, says: isFile ? `${code('file')} part` : elsewhere };
}

function reasoningStreams(exchange: Exchange): Finding {
  const all = chunksOf(exchange, 'reasoning-delta').length;
  const before = countBeforeText(exchange, ({ type }) => type === 'reasoning-delta');
  const says = `${count(before, 'delta')} before the text, ${all - before} after it`;
  return { keeps: before > 1 && before === all, says };
}

function thoughtsStayApart(exchange: Exchange): Finding {
  const texts = partsOfType(exchange, 'reasoning').map(({ text }) => text);
  return { keeps: isDeepStrictEqual(texts, runs.THOUGHTS), says: count(texts.length, 'part') };
}

function sourcesAreParts(exchange: Exchange): Finding {
  const sources = partsOfType(exchange, 'source-url');
  const [{ url, title } = {}] = sources;
  const isKept = url === runs.PAGE.url && title === runs.PAGE.title;
  return { keeps: isKept, says: count(sources.length, 'source') };
}

function searchIsShown(exchange: Exchange): Finding {
  const isCall = ({ type }: { type: string }) => type === 'tool-input-start';
  const calls = chunksOf(exchange, 'tool-input-start').length;
  const isBefore = countBeforeText(exchange, isCall) > 0;
  const when = isBefore ? 'before the text' : 'after the text';
  return { keeps: isBefore, says: calls > 0 ? `shown ${when}` : 'not shown' };
}

function searchHasQuery({ client }: Exchange): Finding {
  const [call] = callsOf(client.message);
  const input = JSON.stringify(call?.input ?? null);
  return { keeps: input.includes(runs.QUERY), says: code(input) };
}

function searchHasOutput({ client }: Exchange): Finding {
  const [call] = callsOf(client.message);
  const isKept = JSON.stringify(call?.output ?? null).includes(runs.PAGE.url);
  return { keeps: isKept, says: `ends as ${code(call?.state ?? 'no call')}` };
}

function secondAgentIsNamed({ client }: Exchange): Finding {
  const naming = partsOf(client.message).filter(
    (part) => part.type !== 'text' && JSON.stringify(part).includes(runs.SECOND_AGENT),
  );
  const says = naming.map(({ type }) => code(type)).join(', ');
  return { keeps: naming.length > 0, says: says || 'not named' };
}

function usageIsKept({ client }: Exchange): Finding {
  const { usage } = (client.message?.metadata ?? {}) as { usage?: { totalTokens?: number } };
  const total = usage?.totalTokens;
  return {
    keeps: total === runs.TOKENS_OF_TWO_RESPONSES,
    says: total === undefined ? 'none' : `${total} tokens`,
  };
}

function refusalIsShown(exchange: Exchange): Finding {
  const isShown = partsOfType(exchange, 'text').some(({ text }) => text === runs.REFUSAL);
  return {
    keeps: isShown && exchange.thrown === undefined,
    says: howItThrew(exchange) ?? (isShown ? 'text' : 'no text'),
  };
}

function openPartsAreClosed(exchange: Exchange): Finding {
  const [text] = partsOfType(exchange, 'text');
  return { keeps: text?.state === 'done', says: `text is ${code(text?.state ?? 'unsaid')}` };
}

function messageGoesOn(exchange: Exchange): Finding {
  const answers = answersOf(exchange);
  const [call] = callsOf(answers[0]);
  const keeps = answers.length === 1 && call?.state === 'output-available';
  const says = `${count(answers.length, 'message')}; the call that asked is ${code(call?.state)}`;
  return { keeps, says };
}

export const FEATURES: readonly { run: runs.Scenario; features: readonly Feature[] }[] = [
  {
    run: runs.TOOL_CALL,
    features: [
      { what: 'text comes as it streams', probe: ofRun(textStreams) },
      { what: 'arguments of a tool come as they stream', probe: ofRun(argumentsStream) },
      { what: 'a call has its input and output', probe: ofRun(callHasOutput) },
      { what: 'each response of the model is a step', probe: ofRun(eachResponseIsAStep) },
      { what: 'tokens used, of all responses', probe: ofRun(usageIsKept) },
    ],
  },
  {
    run: runs.PARALLEL_CALLS,
    features: [{ what: 'parallel calls, each its output', probe: ofRun(eachCallHasItsOutput) }],
  },
  {
    run: runs.TOOL_THROWS,
    features: [
      { what: 'a tool that throws is an error', probe: ofRun(callEndsAs('output-error')) },
    ],
  },
  {
    run: runs.TOOL_TIMES_OUT,
    features: [
      { what: 'a tool that times out is an error', probe: ofRun(callEndsAs('output-error')) },
    ],
  },
  {
    run: runs.TOOL_GIVES_IMAGE,
    features: [{ what: 'an image from a tool is a file', probe: ofRun(imageIsAFile) }],
  },
  {
    run: runs.WEB_SEARCH,
    features: [
      { what: 'hosted web search: shown before the text on it', probe: ofRun(searchIsShown) },
      { what: 'hosted web search: what is searched for', probe: ofRun(searchHasQuery) },
      { what: 'hosted web search: what it found', probe: ofRun(searchHasOutput) },
    ],
  },
  {
    run: runs.CITATIONS,
    features: [{ what: 'url citations are sources', probe: ofRun(sourcesAreParts) }],
  },
  {
    run: runs.REASONING,
    features: [
      { what: 'reasoning comes as it streams', probe: ofRun(reasoningStreams) },
      { what: 'two parts of a summary stay two', probe: ofRun(thoughtsStayApart) },
    ],
  },
  {
    run: runs.HANDOFF,
    features: [{ what: 'handoff: who speaks now', probe: ofRun(secondAgentIsNamed) }],
  },
  {
    run: runs.APPROVAL,
    features: [
      { what: 'approval: the client is asked', probe: ofRun(callEndsAs('approval-requested')) },
      { what: 'approved: the call gets its output', probe: ofAnswer(callHasOutput) },
      { what: 'approved: the same message goes on', probe: ofAnswer(messageGoesOn) },
    ],
  },
  {
    run: runs.DENIAL,
    features: [{ what: 'denied: the call says so', probe: ofAnswer(callEndsAs('output-denied')) }],
  },
  {
    run: runs.REFUSES,
    features: [{ what: 'a refusal of the model is shown', probe: ofRun(refusalIsShown) }],
  },
  {
    run: runs.CUT_BY_LENGTH,
    features: [{ what: 'finish reason: length', probe: ofRun(finishesAs('length')) }],
  },
  {
    run: runs.CUT_BY_FILTER,
    features: [
      { what: 'finish reason: content filter', probe: ofRun(finishesAs('content-filter')) },
    ],
  },
  {
    run: runs.TOO_MANY_TURNS,
    features: [{ what: 'max turns: an error to show', probe: ofRun(endsWithError) }],
  },
  {
    run: runs.INPUT_GUARDRAIL,
    features: [{ what: 'input guardrail: an error to show', probe: ofRun(endsWithError) }],
  },
  {
    run: runs.MODEL_BREAKS,
    features: [
      { what: 'model fails in its text: an error to show', probe: ofRun(endsWithError) },
      { what: 'model fails in its text: the text is closed', probe: ofRun(openPartsAreClosed) },
    ],
  },
];
