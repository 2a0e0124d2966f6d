/** Runs of three agents that hand over to each other, and what a person has to see of each run. */
import fc from 'fast-check';
import type { Decision } from '../../src/core/decision.ts';
import type { Output, ScriptedResponse } from './responses-script.ts';
import { PIXEL } from './scenario-tools.ts';

export const AGENTS = ['Anna', 'Bert', 'Cleo'] as const;

/** What the model does next, in the words of a test. */
type Act =
  | { kind: 'text'; text: string; cites: string[] }
  | { kind: 'reasoning'; texts: string[] }
  | { kind: 'weather'; city: string }
  | { kind: 'find' | 'broken' | 'chart' | 'report' }
  | { kind: 'remove'; path: string; answer: Decision }
  | { kind: 'web' | 'code' | 'image' | 'files'; word: string }
  | { kind: 'mcp'; word: string; isBroken: boolean };

type Response = {
  acts: Act[];
  /** How many agents further it hands over, and before which of its acts. */
  handoff?: { to: 1 | 2; at: number } | undefined;
};
export type GeneratedRun = {
  responses: Response[];
  last: { acts: Act[]; ending: { text: string } | { refusal: string } | { failure: string } };
  pieces: number;
  approvals: boolean;
};

const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
const url = fc.constantFrom('https://a.example/', 'https://b.example/', 'https://c.example/');
const decision: fc.Arbitrary<Decision> = fc.oneof(
  fc.constant({ approved: true }),
  fc.constant({ approved: false }),
  fc.record({ approved: fc.constant(false), reason: word }),
);

const talk: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    kind: fc.constant('text' as const),
    text: word,
    cites: fc.array(url, { maxLength: 2 }),
  }),
  fc.record({
    kind: fc.constant('reasoning' as const),
    texts: fc.array(word, { minLength: 1, maxLength: 2 }),
  }),
  fc.record({ kind: fc.constantFrom('web', 'code', 'image', 'files'), word }),
  fc.record({ kind: fc.constant('mcp' as const), word, isBroken: fc.boolean() }),
);
const call: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constant('weather' as const), city: word }),
  fc.record({ kind: fc.constantFrom('find', 'broken', 'chart', 'report') }),
  fc.record({ kind: fc.constant('remove' as const), path: word, answer: decision }),
);

/** A response after which the run goes on: it has a call, or hands over. */
const response: fc.Arbitrary<Response> = fc
  .tuple(
    fc.array(fc.oneof(talk, call), { maxLength: 5 }),
    fc.option(fc.record({ to: fc.constantFrom(1, 2), at: fc.nat(5) }), { nil: undefined }),
    call,
    fc.nat(5),
  )
  .map(([acts, handoff, needed, at]) => {
    const isCall = ({ kind }: Act) => /^(weather|find|broken|chart|report|remove)$/.test(kind);
    const isEnough = handoff !== undefined || acts.some(isCall);
    return { acts: isEnough ? acts : acts.toSpliced(at, 0, needed), handoff };
  });

export const generatedRun: fc.Arbitrary<GeneratedRun> = fc.record({
  responses: fc.array(response, { maxLength: 4 }),
  last: fc.record({
    acts: fc.array(talk, { maxLength: 3 }),
    ending: fc.oneof(
      { weight: 6, arbitrary: fc.record({ text: word }) },
      { weight: 1, arbitrary: fc.record({ refusal: word }) },
      { weight: 1, arbitrary: fc.record({ failure: fc.constant('overloaded') }) },
    ),
  }),
  pieces: fc.integer({ min: 1, max: 9 }),
  approvals: fc.boolean(),
});

const agentAfter = (agent: number, to: number) => (agent + to) % AGENTS.length;
const transferTo = (agent: number) => `transfer_to_${AGENTS[agent]}`;

/** The run as the model's responses. */
export function scriptOf({ responses, last, pieces }: GeneratedRun): (ScriptedResponse | Error)[] {
  let agent = 0;
  const script: (ScriptedResponse | Error)[] = responses.map(({ acts, handoff }) => {
    const outputs = acts.map(outputOf);
    if (handoff) {
      agent = agentAfter(agent, handoff.to);
      outputs.splice(handoff.at, 0, { call: transferTo(agent) });
    }
    return { outputs, pieces };
  });
  const { acts, ending } = last;
  if ('failure' in ending) script.push(new Error(ending.failure));
  else script.push({ outputs: [...acts.map(outputOf), ending], pieces });
  return script;
}

/** The answers, in the order in which the calls are made. */
export function answersOf({ responses }: GeneratedRun): Decision[] {
  return responses.flatMap(({ acts }) =>
    acts.flatMap((act) => (act.kind === 'remove' ? [act.answer] : [])),
  );
}

function outputOf(act: Act): Output {
  const done = { status: 'completed' };
  switch (act.kind) {
    case 'text': {
      const citations = act.cites.map((cited) => ({
        type: 'url_citation',
        url: cited,
        title: 'T',
      }));
      return { text: act.text, citations };
    }
    case 'reasoning':
      return { reasoning: act.texts };
    case 'weather':
      return { call: 'weather', input: { city: act.city } };
    case 'remove':
      return { call: 'remove', input: { path: act.path } };
    case 'web': {
      const action = { type: 'search', query: act.word };
      return { item: { type: 'web_search_call', ...done, action } };
    }
    case 'files':
      return { item: { type: 'file_search_call', ...done, queries: [act.word], results: null } };
    case 'image': {
      const event = 'response.image_generation_call.partial_image';
      return {
        item: { type: 'image_generation_call', ...done, result: PIXEL },
        events: [{ type: event, partial_image_index: 0, partial_image_b64: PIXEL }],
      };
    }
    case 'code':
      return {
        item: { type: 'code_interpreter_call', ...done, code: act.word, outputs: [] },
        events: [...act.word].map((delta) => ({
          type: 'response.code_interpreter_call_code.delta',
          delta,
        })),
      };
    case 'mcp': {
      const base = { type: 'mcp_call', server_label: 'docs', name: 'lookup', arguments: '{}' };
      return act.isBroken
        ? { item: { ...base, status: 'failed', output: null, error: act.word } }
        : { item: { ...base, ...done, output: act.word, error: null } };
    }
    default:
      return { call: act.kind };
  }
}

/** What has to be seen of the run, as `outline` tells it. */
export function expectedOf(run: GeneratedRun, failedText: string): string[] {
  const cited = new Set<string>();
  const lines: string[] = [];
  let agent = 0;
  let shown: number | undefined;
  const begin = () => {
    lines.push('—');
    if (agent === shown) return;
    const from = shown === undefined ? '' : ` after ${AGENTS[shown]}`;
    lines.push(`is ${AGENTS[agent]}${from}`);
    shown = agent;
  };
  const seen = (act: Act) => linesOf(act, run.approvals, failedText, cited);

  for (const { acts, handoff } of run.responses) {
    begin();
    const parts = acts.map(seen);
    if (handoff) {
      agent = agentAfter(agent, handoff.to);
      const output = JSON.stringify(JSON.stringify({ assistant: AGENTS[agent] }));
      parts.splice(handoff.at, 0, [`${transferTo(agent)}({}) = ${output}`]);
    }
    lines.push(...parts.flat(), ...acts.flatMap(filesOf), ...acts.flatMap(questionsOf));
  }
  const { acts, ending } = run.last;
  if ('failure' in ending) return lines;
  begin();
  lines.push(...acts.flatMap(seen), `says ${'text' in ending ? ending.text : ending.refusal}`);
  return lines;
}

function linesOf(act: Act, approvals: boolean, failedText: string, cited: Set<string>): string[] {
  const json = JSON.stringify;
  switch (act.kind) {
    case 'text': {
      const fresh = [...new Set(act.cites)].filter((one) => !cited.has(one));
      for (const one of fresh) cited.add(one);
      return [`says ${act.text}`, ...fresh.map((one) => `cites ${one}`)];
    }
    case 'reasoning':
      return act.texts.map((text) => `thinks ${text}`);
    case 'weather':
      return [`weather(${json({ city: act.city })}) = ${json(`21° in ${act.city}`)}`];
    case 'find':
      return ['find({}) = {"hits":[1,2]}'];
    case 'broken':
      return [`broken({}) ! ${failedText}`];
    case 'remove': {
      const { path, answer } = act;
      const asked = `remove(${json({ path })})`;
      if (answer.approved) return [`${asked} = ${json(`removed ${path}`)}`];
      if (approvals) return [`${asked} output-denied`];
      return [`${asked} ! ${answer.reason ?? 'The call was not approved.'}`];
    }
    case 'web':
      return [`web_search(${json({ type: 'search', query: act.word })}) = {"status":"completed"}`];
    case 'files':
      return [`file_search(${json({ queries: [act.word] })}) = {"results":[]}`];
    case 'code':
      return [`code_interpreter(${json({ code: act.word })}) = {"outputs":[]}`];
    case 'image':
      return ['image_generation({}) = {"status":"completed"}', 'file image/png'];
    case 'mcp':
      return [act.isBroken ? `lookup({}) ! ${act.word}` : `lookup({}) = ${json(act.word)}`];
    default:
      return [`${act.kind}({}) = "See the file."`];
  }
}

/** What comes when the response is over: the files of tools. */
function filesOf({ kind }: Act): string[] {
  if (kind === 'chart') return ['file image/png'];
  return kind === 'report' ? ['file application/pdf'] : [];
}

/** What comes when the run has stopped for it. */
function questionsOf({ kind }: Act): string[] {
  return kind === 'remove' ? ['asks Allow remove? answered'] : [];
}
