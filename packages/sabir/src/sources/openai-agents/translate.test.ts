import { describe, expect, it } from 'vitest';
import {
  call,
  called,
  done,
  fold,
  interrupted,
  interruption,
  item,
  model,
  output,
  raw,
  says,
  started,
  thinks,
  translate,
  typesOf,
} from '../../../test/openai-agents/events.ts';
import { outline } from '../../../test/openai-agents/outline.ts';
import { describeTranslator } from '../../../test/translator-conformance.ts';
import { foldChunks } from '../../core/fold.ts';
import type { UIMessage } from '../../core/message.ts';
import type { TurnOutcome } from '../../core/outcome.ts';
import { verifyChunks } from '../../core/verify.ts';
import type { OpenAIAgentsOptions, OpenAIAgentsUIMessage } from './events.ts';
import { createOpenAIAgentsTranslator } from './translate.ts';

const FIXTURES = new URL('../../../test/fixtures/openai-agents/', import.meta.url);

describeTranslator('OpenAI Agents', FIXTURES, createOpenAIAgentsTranslator);

const seen = (events: unknown[], options?: OpenAIAgentsOptions) => outline(fold(events, options));

describe('mapping the events of a run: words', () => {
  it('opens a text before its first delta and closes it with the response', () => {
    const { chunks } = translate([started, says('Hel'), says('lo'), done()]);
    expect(chunks).toEqual([
      { type: 'start', messageId: 'm' },
      { type: 'start-step' },
      { type: 'text-start', id: 'text-1' },
      { type: 'text-delta', id: 'text-1', delta: 'Hel' },
      { type: 'text-delta', id: 'text-1', delta: 'lo' },
      { type: 'text-end', id: 'text-1' },
    ]);
  });

  it('begins another text where the model begins another message', () => {
    expect(seen([started, says('a', 'm1'), says('b', 'm1'), says('c', 'm2')])).toEqual([
      ...['—', 'says ab', 'says c'],
    ]);
    const named = (item_id: string) =>
      raw({ type: 'output_text_delta', delta: item_id, providerData: { item_id } });
    expect(seen([started, named('m1'), named('m2')])).toEqual(['—', 'says m1', 'says m2']);
    const unnamed = raw({ type: 'output_text_delta', delta: 'a' });
    expect(seen([started, unnamed, unnamed])).toEqual(['—', 'says aa']);
  });

  it('begins another text after the response is done, though the message has the same name', () => {
    // What follows the end of a response is the next one, whether or not the model says so.
    expect(seen([started, says('a'), done(), says('b')])).toEqual(['—', 'says a', '—', 'says b']);
    expect(seen([started, says('a'), started, says('b')])).toEqual(['—', 'says a', '—', 'says b']);
  });

  it('shows all that a model says which neither begins its responses nor names its words', () => {
    const unnamed = (delta: string) => raw({ type: 'output_text_delta', delta });
    const whole = (...texts: string[]) =>
      item('message_output_created', {
        content: texts.map((text) => ({ type: 'output_text', text })),
      });
    expect(seen([unnamed('once'), done(), whole('once')])).toEqual(['—', 'says once']);
    expect(
      seen([unnamed('a '), unnamed('b'), done(), whole('a b'), done(), whole('the answer')]),
    ).toEqual(['—', 'says a b', '—', 'says the answer']);
    expect(seen([started, unnamed('one'), done(), whole('one'), whole('two')])).toEqual([
      ...['—', 'says one', 'says two'],
    ]);
    // One that was changed on its way is not said twice.
    expect(seen([started, unnamed('draft'), done(), whole('final')])).toEqual(['—', 'says draft']);
  });

  it('says nothing of a delta without words', () => {
    expect(typesOf(translate([started, says(''), thinks('')]).chunks)).toEqual([
      ...['start', 'start-step'],
    ]);
  });

  it('tells a message that was not streamed when it is complete, and no other again', () => {
    const whole = (id: unknown, text: string) =>
      item('message_output_created', { id, content: [null, 'x', { type: 'output_text', text }] });
    expect(seen([started, done(), whole('m1', 'Hello.')])).toEqual(['—', 'says Hello.']);
    expect(seen([started, says('Hel', 'm1'), done(), whole('m1', 'Hello.')])).toEqual([
      ...['—', 'says Hel'],
    ]);
    expect(seen([started, says('a', 'm1'), whole('m2', 'b')])).toEqual(['—', 'says a', 'says b']);
    // Whoever does not say what it streams has streamed everything.
    expect(seen([started, says('a', null), whole('m2', 'a')])).toEqual(['—', 'says a']);
    // And the next response begins anew.
    expect(seen([started, says('a', 'm1'), started, whole('m1', 'b')])).toEqual([
      ...['—', 'says a', '—', 'says b'],
    ]);
  });

  it('shows the files of a message', () => {
    const image = { type: 'image', image: 'https://a.example/i.png' };
    expect(seen([started, item('message_output_created', { content: [image] })])).toEqual([
      ...['—', 'file image/png'],
    ]);
  });

  it('begins a step with whatever comes first', () => {
    expect(seen([says('a')])).toEqual(['—', 'says a']);
    expect(seen([called('c')])[0]).toBe('—');
  });
});

describe('mapping the events of a run: thoughts', () => {
  const reasoning = (fields: object) => item('reasoning_item_created', { content: [], ...fields });

  it('streams each part of a summary as a thought of its own', () => {
    expect(seen([started, thinks('a'), thinks('b'), thinks('c', 'rs', 1), says('d')])).toEqual([
      ...['—', 'thinks ab', 'thinks c', 'says d'],
    ]);
  });

  it('tells a thought that was not streamed when it is complete, and no other again', () => {
    const whole = reasoning({ id: 'rs', content: [null, {}, { text: 'a' }, { text: 'b' }] });
    expect(seen([started, whole])).toEqual(['—', 'thinks a', 'thinks b']);
    expect(seen([started, thinks('a'), thinks('b', 'rs', 1), whole])).toEqual([
      ...['—', 'thinks a', 'thinks b'],
    ]);
    expect(seen([started, thinks('x', 'other'), whole])).toEqual([
      ...['—', 'thinks x', 'thinks a', 'thinks b'],
    ]);
  });

  it('takes the thought itself where there is no summary', () => {
    const text = { type: 'response.reasoning_text.delta', item_id: 'rs', content_index: 0 };
    expect(seen([started, model({ ...text, delta: 'a' })])).toEqual(['—', 'thinks a']);
    expect(seen([started, reasoning({ rawContent: [{ text: 'b' }] })])).toEqual(['—', 'thinks b']);
    expect(seen([started, reasoning({ rawContent: 'b' })])).toEqual(['—']);
    expect(
      seen([started, reasoning({ content: [{ text: 'a' }], rawContent: [{ text: 'b' }] })]),
    ).toEqual(['—', 'thinks a']);
  });

  it('does not repeat what Chat Completions streamed, whose thoughts have no name', () => {
    const delta = { reasoning_content: 'a' };
    const chunk = model({ id: 'c', choices: [{ index: 0, delta }] });
    expect(seen([started, chunk, reasoning({ rawContent: [{ text: 'a' }] })])).toEqual([
      ...['—', 'thinks a'],
    ]);
  });

  it('leaves thoughts out where they are not wanted', () => {
    const events = [started, thinks('a'), reasoning({ content: [{ text: 'b' }] }), says('c')];
    expect(seen(events, { sendReasoning: false })).toEqual(['—', 'says c']);
    expect(seen(events, { sendReasoning: true })).toEqual([
      ...['—', 'thinks a', 'thinks b', 'says c'],
    ]);
  });
});

describe('mapping the events of a run: refusals and citations', () => {
  const refuses = (delta: string) => model({ type: 'response.refusal.delta', item_id: 'm', delta });
  const refusal = item('message_output_created', {
    content: [{ type: 'refusal', refusal: 'No.' }],
  });
  const finishReason = (events: unknown[], outcome: TurnOutcome = { status: 'finished' }) => {
    const last = translate(events).translator.end(outcome).at(-1);
    return last?.type === 'finish' ? last.finishReason : undefined;
  };

  it('shows a refusal as what the model says, once, and ends as filtered', () => {
    const streamed = [started, refuses('N'), refuses('o.'), done(), refusal];
    expect(seen(streamed)).toEqual(['—', 'says No.']);
    expect(finishReason(streamed)).toBe('content-filter');
    expect(seen([started, refusal])).toEqual(['—', 'says No.']);
    expect(finishReason([started, refusal])).toBe('content-filter');
    // The answer that came after all is what counts.
    expect(finishReason([started, refusal, started, says('Yes.')])).toBe('stop');
  });

  it('shows a refusal that the run threw, unless it has been told', () => {
    const error = { name: 'ModelRefusalError', refusal: 'No.' };
    const { translator, chunks } = translate([started]);
    chunks.push(...translator.end(undefined, error));
    expect(outline(foldChunks(chunks))).toEqual(['—', 'says No.']);
    const told = translate([started, refusal]).translator.end(undefined, error);
    expect(typesOf(told)).not.toContain('text-delta');
  });

  it('tells each source once, while the text streams or with the message', () => {
    const cited = (address: string) => ({ type: 'url_citation', url: address, title: 'T' });
    const streamed = (annotation: unknown) =>
      model({ type: 'response.output_text.annotation.added', annotation });
    const annotations = [null, cited('https://a.example/'), cited('https://b.example/')];
    const whole = item('message_output_created', {
      content: [
        { text: 'x', providerData: { annotations } },
        { text: '', providerData: { annotations: 'none' } },
      ],
    });
    expect(seen([started, streamed(cited('https://a.example/')), whole])).toEqual([
      ...['—', 'cites https://a.example/', 'says x', 'cites https://b.example/'],
    ]);
  });

  it('says why a response stopped before its end', () => {
    const cut = (reason: string) =>
      done(undefined, { providerData: { incomplete_details: { reason } } });
    expect(finishReason([started, cut('max_output_tokens')])).toBe('length');
    expect(finishReason([started, cut('content_filter')])).toBe('content-filter');
    expect(finishReason([started, done(undefined, { providerData: {} })])).toBe('stop');
    expect(finishReason([started, cut('max_output_tokens'), started, done()])).toBe('stop');
    const finish = (said: string) => model({ type: 'finish', finishReason: said });
    expect(finishReason([started, finish('length'), finish('stop'), done()])).toBe('length');
    expect(finishReason([started, finish('length'), finish('tool-calls')])).toBe('length');
    expect(finishReason([started, finish('stop')])).toBe('stop');
    const given = { status: 'finished', finishReason: 'other' } as const;
    expect(finishReason([started, finish('length')], given)).toBe('other');
  });
});

describe('mapping the events of a run: agents and usage', () => {
  const updated = (agent: unknown) => ({ type: 'agent_updated_stream_event', agent });
  const by = (name: string) => item('tool_called', call('c'), { agent: { name } });

  it('says who speaks: as the options say, as an item says, or as the run tells', () => {
    expect(seen([started, says('a')], { agent: 'Anna' })).toEqual(['—', 'is Anna', 'says a']);
    expect(seen([started, says('a'), by('Anna')]).slice(0, 3)).toEqual(['—', 'says a', 'is Anna']);
    expect(seen([updated({ name: 'Anna' }), started])).toEqual(['—', 'is Anna']);
    expect(seen([updated('Anna'), started])).toEqual(['—', 'is Anna']);
    expect(seen([by('Anna')], { agent: 'Bert' })[1]).toBe('is Bert');
  });

  it('says it again only when somebody else takes over, and after whom', () => {
    const events = [started, says('a'), started, says('b'), updated({ name: 'Bert' }), started];
    expect(seen([...events, says('c')], { agent: 'Anna' })).toEqual([
      ...['—', 'is Anna', 'says a', '—', 'says b', '—', 'is Bert after Anna', 'says c'],
    ]);
  });

  it('learns a name between two responses without making a step of it', () => {
    const compacted = item('compaction_item_created', {}, { agent: { name: 'Anna' } });
    expect(typesOf(translate([compacted]).chunks)).toEqual(['start']);
    expect(seen([compacted, started])).toEqual(['—', 'is Anna']);
  });

  it('shows a handoff as the call that it is', () => {
    const handoff = call('h', 'transfer_to_Bert', {});
    const result = { callId: 'h', output: { type: 'text', text: 'Bert' } };
    const events = [item('handoff_requested', handoff), item('handoff_occurred', result)];
    expect(seen([started, ...events])).toEqual(['—', 'transfer_to_Bert({}) = "Bert"']);
  });

  it('shows a search for tools as the call that it is', () => {
    const searched = { type: 'tool_search_call', callId: 's', arguments: { q: 'a' } };
    const found = { type: 'tool_search_output', callId: 's', tools: [{ name: 't' }] };
    const events = [
      item('tool_search_called', searched),
      item('tool_search_output_created', found),
    ];
    expect(seen([started, ...events])).toEqual(['—', 'tool_search({"q":"a"}) = [{"name":"t"}]']);
  });

  it('sums the tokens of all responses, with one that was thrown at', () => {
    const usage = {
      inputTokens: 10,
      outputTokens: 5,
      totalTokens: 15,
      inputTokensDetails: [{ cached_tokens: 4 }, { cached_tokens: 1 }],
      outputTokensDetails: { reasoning_tokens: 2 },
    };
    const spent = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
    const cut = (reason: string) =>
      model({
        type: 'response.incomplete',
        response: { incomplete_details: { reason }, usage: spent },
      });
    const { translator } = translate([started, done(usage), started, cut('max_output_tokens')]);
    const error = Object.assign(new Error('cut'), { name: 'ModelBehaviorError' });
    expect(translator.end(undefined, error).at(-1)).toEqual({
      type: 'finish',
      finishReason: 'length',
      messageMetadata: {
        outcome: 'finished',
        usage: {
          inputTokens: 11,
          outputTokens: 7,
          totalTokens: 18,
          cachedInputTokens: 5,
          reasoningTokens: 2,
        },
      },
    });
    // A response that came to its end is counted once, though both tell of it.
    const counted = fold([started, cut('max_output_tokens'), done(usage)]).metadata;
    expect(counted?.usage?.totalTokens).toBe(15);
    // And one that was given up is not counted for the next.
    expect(fold([started, cut('content_filter'), started]).metadata?.usage).toBeUndefined();
  });
});

describe('mapping the events of a run: waiting', () => {
  const asked = interrupted(interruption('c', 'remove'));

  it('asks about a call that waits, and ends the step so that clients may answer', () => {
    const { chunks } = translate([started, called('c', 'remove'), done({ totalTokens: 3 }), asked]);
    expect(chunks.slice(-3)).toEqual([
      {
        type: 'data-question',
        id: 'approve-c',
        data: {
          questionId: 'approve-c',
          text: 'Allow remove?',
          options: ['Approve', 'Deny'],
          toolCallId: 'c',
          status: 'open',
        },
      },
      { type: 'message-metadata', messageMetadata: { usage: { totalTokens: 3 } } },
      { type: 'finish-step' },
    ]);
    expect(seen([started, called('c'), asked, says('x')]).slice(-2)).toEqual(['—', 'says x']);
  });

  it('asks as soon as the run tells that a call needs it', () => {
    const early = item('tool_approval_requested', call('c', 'remove'));
    const { chunks } = translate([started, called('c', 'remove'), early, asked]);
    expect(typesOf(chunks).filter((type) => type === 'data-question')).toHaveLength(1);
  });

  it('takes an answer once, and only to what was asked', () => {
    const answer = { type: 'approval_answered', approvalId: 'approve-c', approved: true };
    const { translator, chunks } = translate([
      ...[started, called('c', 'remove'), asked, answer, answer],
      ...[
        { ...answer, approvalId: 'approve-x' },
        { ...answer, approvalId: 5 },
      ],
      { type: 'approval_expired', approvalId: 'approve-c' },
    ]);
    expect(chunks.at(-1)).toMatchObject({
      data: { status: 'answered', answer: { approved: true } },
    });
    expect(translator.stats.malformed).toEqual({ approval_answered: 3, approval_expired: 1 });
  });

  it('takes only true for a yes, and only a text for a reason', () => {
    const after = (fields: object) => {
      const answer = { type: 'approval_answered', approvalId: 'approve-c', ...fields };
      return translate([started, called('c', 'remove'), asked, answer]).chunks.at(-1);
    };
    expect(after({ approved: 'yes', reason: 5 })).toMatchObject({
      data: { answer: { approved: false } },
    });
    expect(after({ approved: false, reason: 'No.' })).toMatchObject({
      data: { answer: { approved: false, reason: 'No.' } },
    });
  });

  it('takes back its questions when the turn ends, unless it only pauses', () => {
    const question = (outcome: TurnOutcome) => {
      const { translator } = translate([started, called('c', 'remove'), asked]);
      const told = translator.end(outcome).find(({ type }) => type === 'data-question');
      return told && (told as { data: { status: string } }).data.status;
    };
    expect(question({ status: 'stopped' })).toBe('withdrawn');
    expect(question({ status: 'finished' })).toBe('withdrawn');
    expect(question({ status: 'paused' })).toBeUndefined();
  });

  it('closes a call inside a tool that is an agent, at the end at the latest', () => {
    const nested = [called('o', 'expert'), interrupted(interruption('i', 'remove'))];
    const answer = { type: 'approval_answered', approvalId: 'approve-i', approved: true };
    expect(seen([started, ...nested, answer, output('o', 'done')])).toEqual([
      ...['—', 'expert({"q":1}) = "done"', 'remove({"q":1}) = null', 'asks Allow remove? answered'],
    ]);
  });

  it('skips an interruption that is no call', () => {
    const odd = interrupted(null, { rawItem: null }, { rawItem: { type: 'message' } });
    expect(typesOf(translate([started, odd]).chunks)).toEqual([
      ...['start', 'start-step', 'message-metadata', 'finish-step'],
    ]);
  });

  it('knows what an interruption is asked for by', () => {
    const { translator } = translate([started, called('c', 'remove')]);
    expect(translator.approvalIdsOf([interruption('c', 'remove')])).toEqual(['approve-c']);
    expect(translator.approvalIdsOf([{ type: 'tool_approval_item' }])).toEqual([]);
  });
});

describe('what is counted', () => {
  it('counts what it does not know, and goes on', () => {
    const { translator } = translate([
      ...[{ type: 'new_stream_event' }, raw({ type: 'new_data' }), raw({ type: 'toString' })],
      ...[item('new_item', {}), item('toString', {}), started, says('a')],
    ]);
    expect(translator.stats).toEqual({
      unknown: {
        new_stream_event: 1,
        'raw_model_stream_event new_data': 1,
        'raw_model_stream_event toString': 1,
        'run_item_stream_event new_item': 1,
        'run_item_stream_event toString': 1,
      },
      malformed: {},
    });
  });

  it('counts what has not the shape it should have, and shows nothing of it', () => {
    const names = ['message_output_created', 'reasoning_item_created', 'tool_output'];
    const more = ['tool_called', 'handoff_requested', 'handoff_occurred', 'tool_search_called'];
    const last = ['tool_search_output_created', 'tool_approval_requested'];
    const wrong = [
      ...[null, 5, 'x', {}, { type: 5 }],
      ...[{ type: 'raw_model_stream_event' }, raw({ type: 5 }), says(5)],
      raw({ type: 'response_done', response: null }),
      ...[...names, ...more, ...last].map((name) => item(name, {})),
      ...[
        item('compaction_item_created', null),
        { type: 'run_item_stream_event', name: 'tool_called' },
      ],
      { ...item('tool_called', call('c')), name: 5 },
      { type: 'agent_updated_stream_event', agent: {} },
      { type: 'run_interrupted', interruptions: 'c' },
    ];
    const { translator, chunks } = translate(wrong);
    const { malformed, unknown } = translator.stats;
    expect(Object.values(malformed).reduce((sum, count) => sum + count, 0)).toBe(wrong.length);
    expect(malformed['(no type)']).toBe(5);
    expect(unknown).toEqual({});
    expect(typesOf(chunks).filter((type) => type !== 'start')).toEqual([]);
  });

  it('counts nothing of what has no place in a chat', () => {
    const hosted = (name: string) => ({ type: 'hosted_tool_call', id: 'h', name });
    const { translator, chunks } = translate([
      item('compaction_item_created', {}),
      ...[hosted('mcp_list_tools'), hosted('mcp_approval_response')].map((one) =>
        item('tool_called', one),
      ),
      model({ type: 'response.queued' }),
    ]);
    expect(translator.stats).toEqual({ unknown: {}, malformed: {} });
    expect(typesOf(chunks)).toEqual(['start']);
  });

  it('says start with whatever is known first, and nothing with what is not', () => {
    expect(typesOf(translate([model({ type: 'x' })]).chunks)).toEqual(['start']);
    expect(translate([raw({ type: 'x' }), item('x', {}), { type: 'x' }]).chunks).toEqual([]);
  });

  it('counts nothing of a response that is done, and does not end a text with one that is not', () => {
    const broken = raw({ type: 'response_done', response: null });
    const { translator, chunks } = translate([started, says('a'), broken, says('b'), done()]);
    expect(translator.stats.malformed).toEqual({ 'raw_model_stream_event response_done': 1 });
    expect(outline(foldChunks(chunks))).toEqual(['—', 'says ab']);
  });

  it('counts nothing that comes after the end', () => {
    const { translator } = translate([started]);
    translator.end();
    expect(translator.push({ type: 'x' })).toEqual([]);
    expect(translator.stats).toEqual({ unknown: {}, malformed: {} });
  });

  it('gives messages ids that differ unless told otherwise', () => {
    const idOf = (options: OpenAIAgentsOptions) => {
      const [start] = createOpenAIAgentsTranslator(options).end();
      return start?.type === 'start' ? start.messageId : undefined;
    };
    expect(idOf({})).not.toBe(idOf({}));
    const message = { id: 'old', role: 'assistant' as const, parts: [] };
    expect([idOf({ message }), idOf({ message, messageId: 'new' })]).toEqual(['old', 'new']);
  });
});

type Loose = { type: string } & Record<string, unknown>;

/** The message of a turn that paused. */
function paused(events: unknown[], options: OpenAIAgentsOptions = {}): UIMessage {
  const { translator, chunks } = translate(events, options);
  return foldChunks([...chunks, ...translator.end({ status: 'paused' })]);
}

/** What is seen after it went on, in chunks that keep the law. */
function goOn(message: UIMessage, events: unknown[], options: OpenAIAgentsOptions = {}) {
  const { translator, chunks } = translate(events, { ...options, message });
  chunks.push(...translator.end({ status: 'finished' }));
  expect(verifyChunks(chunks, { aiSdk: 7, message })).toEqual([]);
  return outline(foldChunks(chunks, message));
}

const change = (message: UIMessage, type: string, fields: object): UIMessage => ({
  ...message,
  parts: (message.parts as Loose[]).map((part) =>
    part.type === type ? { ...part, ...fields } : part,
  ) as UIMessage['parts'],
});

const approvals = { approvals: true };
const waiting = [started, called('c', 'remove'), done(), interrupted(interruption('c', 'remove'))];
/** As a stock client writes the answer into the message. */
const responded = (approval: object) =>
  change(paused(waiting, approvals), 'tool-remove', {
    state: 'approval-responded',
    approval: { id: 'approve-c', ...approval },
  });

describe('going on with a message, as after an approval', () => {
  it('gives an allowed call what its tool gave, and marks the question as answered', () => {
    const message = responded({ approved: true });
    const events = [output('c', 'gone'), started, says('Done.')];
    expect(goOn(message, events, approvals)).toEqual([
      ...['—', 'remove({"q":1}) = "gone"', 'asks Allow remove? answered', '—', 'says Done.'],
    ]);
  });

  it('shows a denied call as denied', () => {
    const message = responded({ approved: false, reason: 'No.' });
    const events = [output('c', 'Not approved.'), started, says('Then not.')];
    expect(goOn(message, events, approvals)).toEqual([
      ...['—', 'remove({"q":1}) output-denied', 'asks Allow remove? answered'],
      ...['—', 'says Then not.'],
    ]);
  });

  it('takes the answer from the question, where it was written there', () => {
    const message = (answer: unknown) => {
      const before = paused(waiting);
      const question = (before.parts as Loose[]).find(({ type }) => type === 'data-question');
      const data = { ...(question?.data as object), status: 'answered', answer };
      return change(before, 'data-question', { data });
    };
    const before = ['—', 'remove({"q":1}) ! It waits until the run goes on.'];
    const events = [output('c', 'gone'), started, says('x')];
    expect(goOn(message({ approved: true }), events)).toEqual([
      ...[...before, 'asks Allow remove? answered'],
      ...['—', 'remove({"q":1}) = "gone"', '—', 'says x'],
    ]);
    expect(goOn(message('No, keep it.'), events)).toEqual([
      ...[...before, 'asks Allow remove? answered'],
      ...['—', 'remove({"q":1}) ! No, keep it.', '—', 'says x'],
    ]);
  });

  it('asks no second time, and takes the answer that comes now', () => {
    const message = paused(waiting, approvals);
    const answer = { type: 'approval_answered', approvalId: 'approve-c', approved: true };
    const again = interrupted(interruption('c', 'remove'));
    const { chunks, translator } = translate([again, answer, output('c', 'gone')], {
      ...approvals,
      message,
    });
    expect(typesOf(chunks)).toEqual([
      ...[
        'start',
        'message-metadata',
        'data-question',
        'tool-approval-response',
        'tool-output-available',
      ],
    ]);
    expect(translator.stats.malformed).toEqual({});
  });

  it('leaves a question open that nobody answered, until the turn is over', () => {
    const message = paused(waiting, approvals);
    expect(goOn(message, [])).toContain('asks Allow remove? withdrawn');
  });

  it('closes a call inside a tool that is an agent, and gives the tool its answer', () => {
    const nested = [started, called('o', 'expert'), interrupted(interruption('i', 'remove'))];
    const message = change(paused(nested, approvals), 'tool-remove', {
      state: 'approval-responded',
      approval: { id: 'approve-i', approved: true },
    });
    const events = [output('o', 'done'), started, says('x'), done()];
    expect(goOn(message, events, approvals)).toEqual([
      ...['—', 'expert({"q":1}) ! It waits until the run goes on.', 'remove({"q":1}) = null'],
      ...['asks Allow remove? answered', '—', 'expert({"q":1}) = "done"', '—', 'says x'],
    ]);
  });

  it('does not mistake a new call for one of the message that has ended', () => {
    const message = fold([started, called('c'), output('c', 1)]);
    const events = [started, called('c'), output('c', 2)];
    const { parts } = foldChunks(translate(events, { message }).chunks, message);
    const calls = parts.flatMap((part) => ('toolCallId' in part ? [part.toolCallId] : []));
    expect(calls).toEqual(['c', 'c-2']);
    expect(outline({ parts }).at(1)).toBe('search({"q":1}) = 1');
  });

  it('keeps a dynamic tool dynamic', () => {
    const call = { type: 'dynamic-tool', toolName: 'search', toolCallId: 'c', input: {} };
    const parts = [{ type: 'step-start' }, { ...call, state: 'input-available' }];
    const message = { id: 'm', role: 'assistant', parts } as UIMessage;
    const { chunks } = translate([output('c', 1)], { message });
    expect(chunks.at(-1)).toMatchObject({ type: 'tool-output-available', dynamic: true });
  });

  it('goes on counting tokens', () => {
    const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3 };
    const message = fold([started, done(usage)]);
    expect(message.metadata?.usage).toEqual(usage);
    const { translator, chunks } = translate([started, done(usage)], { message });
    chunks.push(...translator.end({ status: 'finished' }));
    const { metadata } = foldChunks(chunks, message) as OpenAIAgentsUIMessage;
    expect(metadata?.usage).toEqual({ inputTokens: 2, outputTokens: 4, totalTokens: 6 });
  });

  it('tells no source twice, and gives new ones ids of their own', () => {
    const cites = (annotation: object) =>
      model({ type: 'response.output_text.annotation.added', annotation });
    const known = [
      cites({ url: 'https://a.example/' }),
      cites({ file_id: 'f1', filename: 'a.pdf' }),
      cites({ filename: 'b.pdf' }),
    ];
    const message = fold([started, ...known]);
    const events = [started, ...known, cites({ url: 'https://c.example/' })];
    const { chunks } = translate(events, { message });
    expect(chunks.slice(2)).toEqual([
      { type: 'source-url', sourceId: 'source-4', url: 'https://c.example/' },
    ]);
  });

  it('says who speaks only if it is somebody else', () => {
    const message = fold([started, says('a')], { agent: 'Anna' });
    expect(goOn(message, [started, says('b')], { agent: 'Anna' }).slice(3)).toEqual([
      ...['—', 'says b'],
    ]);
    expect(goOn(message, [started, says('b')], { agent: 'Bert' }).slice(3)).toEqual([
      ...['—', 'is Bert after Anna', 'says b'],
    ]);
  });

  it('survives a message of any shape', () => {
    const parts = [
      ...[
        { type: 'tool-x' },
        { type: 5, toolCallId: 'c' },
        { type: 'dynamic-tool', toolCallId: 'd' },
      ],
      ...[{ type: 'data-question' }, { type: 'data-question', data: {} }],
      ...[{ type: 'data-agent' }, { type: 'data-agent', data: {} }],
      ...[{ type: 'source-document' }, { type: 'source-url' }, { type: 'tool-y', toolCallId: 'y' }],
    ];
    const message = { id: 'm', role: 'assistant', metadata: 'x', parts } as unknown as UIMessage;
    const { chunks, translator } = translate([started, says('a')], { message });
    expect(typesOf([...chunks, ...translator.end()]).at(-1)).toBe('finish');
  });
});
