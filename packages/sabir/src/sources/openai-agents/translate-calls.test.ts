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
  says,
  started,
  translate,
  typesOf,
} from '../../../test/openai-agents/events.ts';
import { outline } from '../../../test/openai-agents/outline.ts';
import { foldChunks } from '../../core/fold.ts';
import { verifyChunks } from '../../core/verify.ts';
import type { ApprovalRequest, OpenAIAgentsOptions } from './events.ts';

/** What is seen behind the beginning of the step. */
const seen = (events: unknown[], options?: OpenAIAgentsOptions) =>
  outline(fold([started, ...events], options)).slice(1);

const added = (fields: object) => model({ type: 'response.output_item.added', item: fields });
const finished = (fields: object) => model({ type: 'response.output_item.done', item: fields });
const streams = (item_id: string, delta: unknown, kind = 'function_call_arguments') =>
  model({ type: `response.${kind}.delta`, item_id, delta });
const begun = (id: string, name = 'search') =>
  added({ id, type: 'function_call', call_id: `call-${id}`, name, arguments: '' });

describe('calls of tools', () => {
  it('streams the arguments, then gives the input, then what the tool gave', () => {
    const { chunks } = translate([
      ...[started, begun('a'), streams('a', '{"q"'), streams('a', ':1}')],
      ...[called('call-a'), output('call-a', { hits: 2 })],
    ]);
    const base = { toolCallId: 'call-a', providerExecuted: true };
    expect(chunks.slice(2)).toEqual([
      { type: 'tool-input-start', toolName: 'search', ...base },
      { type: 'tool-input-delta', toolCallId: 'call-a', inputTextDelta: '{"q"' },
      { type: 'tool-input-delta', toolCallId: 'call-a', inputTextDelta: ':1}' },
      { type: 'tool-input-available', toolName: 'search', input: { q: 1 }, ...base },
      { type: 'tool-output-available', output: { hits: 2 }, ...base },
    ]);
  });

  it('keeps calls apart whose arguments come at the same time', () => {
    const { chunks } = translate([
      ...[started, begun('a'), begun('b', 'find')],
      ...[streams('b', '{"b"'), streams('a', '{"a"'), streams('b', ':2}'), streams('a', ':1}')],
    ]);
    const inputs = foldChunks(chunks).parts.map((part) => (part as { input?: unknown }).input);
    expect(inputs.slice(1)).toEqual([{ a: 1 }, { b: 2 }]);
  });

  it('hears no arguments of calls that it does not know, or that are none', () => {
    const { chunks } = translate([
      ...[started, streams('x', '{}'), begun('a'), streams('a', 5)],
      ...[added({ type: 'function_call' }), added({ id: 'm', type: 'message' })],
    ]);
    expect(typesOf(chunks).slice(2)).toEqual(['tool-input-start']);
  });

  it('waits for the id of a call that is told late', () => {
    const late = { id: 'a', type: 'function_call', name: 'search', arguments: '{"q":1}' };
    const events = [added(late), streams('a', '{}'), finished({ ...late, call_id: 'c' })];
    expect(seen([...events, output('c', 'ok')])).toEqual(['search({"q":1}) = "ok"']);
  });

  it('forgets the names of streamed items when the next response begins', () => {
    const { chunks } = translate([
      started,
      begun('a'),
      called('call-a'),
      started,
      streams('a', 'x'),
    ]);
    expect(typesOf(chunks)).not.toContain('tool-input-delta');
  });

  it('shows arguments that are no JSON as they are, and none as empty', () => {
    const written = (given: string) => item('tool_called', { ...call('c'), arguments: given });
    expect(seen([written('{"q":'), output('c', 1)])).toEqual(['search("{\\"q\\":") = 1']);
    expect(seen([written(''), output('c', 1)])).toEqual(['search({}) = 1']);
  });

  it('makes two calls of one id that is used twice in a turn', () => {
    const first = [called('c'), output('c', 1)];
    const second = [started, called('c'), output('c', 2), started, called('c'), output('c', 3)];
    const { parts } = fold([started, ...first, ...second]);
    const ids = parts.flatMap((part) => ('toolCallId' in part ? [part.toolCallId] : []));
    expect(ids).toEqual(['c', 'c-2', 'c-3']);
    expect(outline({ parts }).filter((line) => line !== '—')).toEqual([
      ...['search({"q":1}) = 1', 'search({"q":1}) = 2', 'search({"q":1}) = 3'],
    ]);
  });

  it('ignores an answer to a call that nobody made', () => {
    expect(seen([output('x', 1), says('a')])).toEqual(['says a']);
  });

  it('gives up calls that the turn leaves without an answer', () => {
    expect(seen([called('c')])).toEqual(['search({"q":1}) ! The tool gave no result.']);
  });

  it('shows as failed what the SDK writes where a tool failed', () => {
    const texts = [
      'An error occurred while running the tool. Please try again. Error: no disk',
      'An error occurred while parsing tool arguments. Please try again with valid JSON.',
      "Tool 'search' timed out after 100ms.",
      'Tool call was cancelled.',
    ];
    for (const text of texts) {
      expect(seen([called('c'), output('c', text)])).toEqual([`search({"q":1}) ! ${text}`]);
    }
    const quoted = 'He said: An error occurred while running the tool.';
    expect(seen([called('c'), output('c', quoted)])).toEqual([`search({"q":1}) = "${quoted}"`]);
  });

  it('lets the application say what a failure is', () => {
    const given: unknown[] = [];
    const isToolError = (result: unknown, { toolName }: { toolName: string }) => {
      given.push([result, toolName]);
      return result === 'sorry' || typeof result === 'object';
    };
    const told = (result: unknown) => seen([called('c'), output('c', result)], { isToolError });
    expect(told('sorry')).toEqual(['search({"q":1}) ! sorry']);
    expect(told({ ok: false })).toEqual(['search({"q":1}) ! The tool failed.']);
    const text = "Tool 'x' timed out after 1ms.";
    expect(told(text)).toEqual([`search({"q":1}) = "${text}"`]);
    expect(given[0]).toEqual(['sorry', 'search']);
  });

  it('shows as failed what was stopped, and a patch that was not applied', () => {
    const aborted = output('c', 'aborted', { status: 'incomplete' });
    expect(seen([called('c'), aborted])).toEqual([
      'search({"q":1}) ! The tool was stopped before it was done.',
    ]);
    const patch = { type: 'apply_patch_call', callId: 'p', operation: { path: 'a' } };
    const result = (given: unknown) =>
      item('tool_output', {
        type: 'apply_patch_call_output',
        callId: 'p',
        status: 'failed',
        output: given,
      });
    const call = 'apply_patch({"path":"a"})';
    expect(seen([item('tool_called', patch), result('No.')])).toEqual([`${call} ! No.`]);
    expect(seen([item('tool_called', patch), result('')])).toEqual([
      `${call} ! The patch could not be applied.`,
    ]);
  });

  it('gives what the model reads where the tool itself is not heard', () => {
    const read = (given: unknown) =>
      seen([called('c'), item('tool_output', { callId: 'c', output: given })]);
    expect(read({ type: 'text', text: 'a' })).toEqual(['search({"q":1}) = "a"']);
    expect(read('a')).toEqual(['search({"q":1}) = "a"']);
    expect(read(undefined)).toEqual(['search({"q":1}) = null']);
  });

  it('gives a value that JSON cannot carry in a form that it can', () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    expect(seen([called('c'), output('c', cycle)])).toEqual([
      'search({"q":1}) = {"self":"[circular]"}',
    ]);
  });
});

describe('tools that OpenAI runs', () => {
  it('shows a call of them while it runs, and what it found', () => {
    const search = { id: 'w', type: 'web_search_call' };
    const { chunks } = translate([started, added({ ...search, status: 'in_progress' })]);
    expect(foldChunks(chunks).parts.at(-1)).toMatchObject({
      type: 'tool-web_search',
      state: 'input-streaming',
      input: {},
    });
    const action = { type: 'search', query: 'a' };
    expect(seen([finished({ ...search, status: 'completed', action })])).toEqual([
      'web_search({"type":"search","query":"a"}) = {"status":"completed"}',
    ]);
    expect(seen([finished({ ...search, status: 'searching' })])).toEqual([
      'web_search({}) ! The tool gave no result.',
    ]);
  });

  it('tells them from the items of the run alone', () => {
    const hosted = (name: string, fields: object) =>
      item('tool_called', { type: 'hosted_tool_call', id: name, name, ...fields });
    const events = [
      hosted('web_search_call', { providerData: { action: { query: 'a' } } }),
      hosted('file_search_call', { providerData: { queries: ['a'] } }),
      hosted('code_interpreter_call', { providerData: { code: 'a' } }),
      hosted('image_generation_call', { output: 'aGk=' }),
      hosted('mcp_call', { output: 'o', providerData: { name: 'look', arguments: '{"a":1}' } }),
    ];
    expect(seen([...events, ...events])).toEqual([
      'web_search({"query":"a"}) = {"status":"completed"}',
      'file_search({"queries":["a"]}) = {"results":[]}',
      'code_interpreter({"code":"a"}) = {"outputs":[]}',
      ...['image_generation({}) = {"status":"completed"}', 'file image/png'],
      'look({"a":1}) = "o"',
    ]);
  });

  it('shows an image before it is finished', () => {
    const image = { id: 'i', type: 'image_generation_call' };
    const preview = (partial_image_b64: unknown) =>
      model({
        type: 'response.image_generation_call.partial_image',
        item_id: 'i',
        partial_image_b64,
        output_format: 'jpeg',
      });
    const { chunks } = translate([started, added(image), preview('aGE='), preview(5)]);
    expect(chunks.at(-1)).toMatchObject({
      type: 'tool-output-available',
      preliminary: true,
      output: { image: 'data:image/jpeg;base64,aGE=' },
    });
    expect(
      seen([added(image), finished({ ...image, status: 'failed', error: 'Too big.' })]),
    ).toEqual(['image_generation({}) ! Too big.']);
  });

  it('streams code as the input that it is, whatever is in it', () => {
    const code = { id: 'c', type: 'code_interpreter_call' };
    const write = (delta: string) => streams('c', delta, 'code_interpreter_call_code');
    const { chunks } = translate([started, added(code), write('print("'), write('\n\\")')]);
    expect(foldChunks(chunks).parts.at(-1)).toMatchObject({ input: { code: 'print("\n\\")' } });
  });

  it('says why a call of a server failed', () => {
    const failed = (error: unknown) =>
      seen([finished({ id: 'c', type: 'mcp_call', name: 'look', arguments: '{}', error })]);
    expect(failed('Away.')).toEqual(['look({}) ! Away.']);
    expect(failed({ message: 'Away.' })).toEqual(['look({}) ! Away.']);
    expect(failed({})).toEqual(['look({}) ! The tool failed.']);
    expect(failed(null)).toEqual(['look({}) = null']);
  });
});

describe('calls that wait', () => {
  const waits = [called('c', 'remove'), done(), interrupted(interruption('c', 'remove'))];
  const answer = (fields: object, approvalId = 'approve-c') => ({
    type: 'approval_answered',
    approvalId,
    approved: true,
    ...fields,
  });
  const approvals = { approvals: true };

  it('waits on the call too, where that is wanted', () => {
    const { chunks } = translate([started, ...waits], approvals);
    expect(chunks).toContainEqual({
      type: 'tool-approval-request',
      approvalId: 'approve-c',
      toolCallId: 'c',
    });
    expect(typesOf(translate([started, ...waits]).chunks)).not.toContain('tool-approval-request');
  });

  it('goes on with a call that was allowed', () => {
    const events = [...waits, answer({}), output('c', 'gone')];
    const allowed = ['remove({"q":1}) = "gone"', 'asks Allow remove? answered'];
    expect(seen(events)).toEqual(allowed);
    expect(seen(events, approvals)).toEqual(allowed);
  });

  it('shows a denial as one, with its reason where there is no state for it', () => {
    const events = (fields: object) => [
      ...[...waits, answer({ approved: false, ...fields }), output('c', 'Not approved.')],
    ];
    expect(seen(events({}), approvals)[0]).toBe('remove({"q":1}) output-denied');
    expect(seen(events({}))[0]).toBe('remove({"q":1}) ! The call was not approved.');
    expect(seen(events({ reason: 'Keep it.' }))[0]).toBe('remove({"q":1}) ! Keep it.');
  });

  it('shows that nobody answered in time', () => {
    const expired = { type: 'approval_expired', approvalId: 'approve-c' };
    expect(seen([...waits, expired, output('c', 'x')])).toEqual([
      ...['remove({"q":1}) ! Nobody answered in time.', 'asks Allow remove? expired'],
    ]);
  });

  it('asks in the words of the application, and of whom it says', () => {
    const requests: ApprovalRequest[] = [];
    const terms = { text: 'Really?', answerBy: { role: 'owner' as const }, expiresAt: 5 };
    const question = (request: ApprovalRequest) => {
      requests.push(request);
      return terms;
    };
    const asked = interrupted(interruption('c', 'remove', { name: 'Anna' }));
    const { chunks } = translate([started, called('c', 'remove'), asked], { question });
    expect(chunks.find(({ type }) => type === 'data-question')).toMatchObject({ data: terms });
    expect(requests).toEqual([
      {
        approvalId: 'approve-c',
        toolCallId: 'c',
        toolName: 'remove',
        input: { q: 1 },
        agent: 'Anna',
      },
    ]);
  });

  it('asks the owner alone where the application cannot say whom', () => {
    const question = () => {
      throw new Error('no idea');
    };
    const { chunks } = translate([started, ...waits], { question });
    expect(chunks.find(({ type }) => type === 'data-question')).toMatchObject({
      data: { text: 'Allow remove?', answerBy: { role: 'owner' } },
    });
  });

  it('shows a call inside a tool that is an agent, which nobody answers', () => {
    const nested = [called('outer', 'expert'), interrupted(interruption('inner', 'remove'))];
    const answered = answer({}, 'approve-inner');
    const allowed = [...nested, answered, output('outer', 'done'), started, says('x')];
    expect(seen(allowed).slice(0, 2)).toEqual([
      'expert({"q":1}) = "done"',
      'remove({"q":1}) = null',
    ]);
    const denied = [...nested, { ...answered, approved: false }, output('outer', 'no')];
    expect(seen(denied, approvals).slice(0, 2)).toEqual([
      ...['expert({"q":1}) = "no"', 'remove({"q":1}) output-denied'],
    ]);
  });

  it('asks about each of two calls that have the same id', () => {
    const again = [started, ...waits, answer({}, 'approve-c-2'), output('c', 'too')];
    expect(seen([...waits, answer({}), output('c', 'gone'), ...again])).toEqual([
      ...['remove({"q":1}) = "gone"', 'asks Allow remove? answered', '—'],
      ...['remove({"q":1}) = "too"', 'asks Allow remove? answered'],
    ]);
  });

  it('says why a call ends with a turn that only pauses', () => {
    const { translator, chunks } = translate([started, ...waits]);
    chunks.push(...translator.end({ status: 'paused' }));
    expect(verifyChunks(chunks)).toEqual([]);
    expect(outline(foldChunks(chunks))[1]).toBe(
      'remove({"q":1}) ! It waits until the run goes on.',
    );
  });

  it('leaves a call waiting that can be answered in a client', () => {
    const { translator, chunks } = translate([started, ...waits], approvals);
    chunks.push(...translator.end({ status: 'paused' }));
    expect(outline(foldChunks(chunks))[1]).toBe('remove({"q":1}) approval-requested');
    for (const aiSdk of [6, 7] as const) expect(verifyChunks(chunks, { aiSdk })).toEqual([]);
  });
});

describe('calls that say little of themselves', () => {
  it('gives what was found to the oldest search for tools that waits', () => {
    const search = (id: string) =>
      item('tool_search_called', { type: 'tool_search_call', id, call_id: null, arguments: {} });
    const found = (name: string, more: object = {}) =>
      item('tool_search_output_created', {
        type: 'tool_search_output',
        id: `out-${name}`,
        call_id: null,
        tools: [{ name }],
        ...more,
      });
    expect(seen([search('one'), search('two'), found('a'), found('b')])).toEqual([
      'tool_search({}) = [{"name":"a"}]',
      'tool_search({}) = [{"name":"b"}]',
    ]);
    expect(seen([search('one'), search('two'), found('b', { callId: 'two' })])).toEqual([
      'tool_search({}) ! The tool gave no result.',
      'tool_search({}) = [{"name":"b"}]',
    ]);
    expect(seen([found('a')])).toEqual([]);
  });

  it('says of which namespace a tool is that asks', () => {
    const asked: ApprovalRequest[] = [];
    const question = (request: ApprovalRequest) => {
      asked.push(request);
      return {};
    };
    const waits = { ...interruption('c'), rawItem: { ...call('c'), namespace: 'crm' } };
    seen([interrupted(waits)], { question });
    expect(asked).toMatchObject([{ toolName: 'search', namespace: 'crm' }]);
  });

  it('asks for each of two calls that differ in nothing but what they are for', () => {
    const waits = (path: string, agent = 'A') => ({
      type: 'tool_approval_item',
      agent: { name: agent },
      rawItem: call('0', 'remove', { path }),
    });
    const both = interrupted(waits('a'), waits('b'), waits('b', 'B'), waits('b', 'B'));
    const lines = ['a', 'b', 'b', 'b'].map((path) => `remove({"path":"${path}"}) = null`);
    const { chunks, translator } = translate([started, both, both]);
    const message = foldChunks([...chunks, ...translator.end({ status: 'finished' })]);
    expect(outline(message).slice(1)).toEqual(
      lines.flatMap((line) => [line, 'asks Allow remove? withdrawn']),
    );
    const ids = translator.approvalIdsOf(both.interruptions as never);
    expect(new Set(ids).size).toBe(4);
  });
});
