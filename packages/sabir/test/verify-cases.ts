/**
 * What a stream may and may not say, with what the real clients do about it: the cases that
 * `verify.test.ts` puts before the verifier and before the clients.
 */
import type { AiSdkMajor } from '../src/core/chunks.ts';
import type { ViolationCode } from '../src/core/verify.ts';
import type { ClientName, ClientResult } from './real-clients.ts';

export type Wire = { type: string; [key: string]: unknown };
export type Outcome = 'dies' | 'damaged' | 'fine';

export const start = { type: 'start', messageId: 'm' };
export const finish = { type: 'finish' };
export const step = { type: 'start-step' };
export const stepEnd = { type: 'finish-step' };
export const failure = { type: 'error', errorText: 'no luck' };
export const turn = (...chunks: unknown[]) => [start, ...chunks, finish];
export const open = (id = 't') => ({ type: 'text-start', id });
export const delta = (text = 'abc', id = 't') => ({ type: 'text-delta', id, delta: text });
export const close = (id = 't') => ({ type: 'text-end', id });
const think = { type: 'reasoning-start', id: 't' };
export const input = { type: 'tool-input-start', toolCallId: 'c', toolName: 'look' };
export const args = (text = '{"a":1}') => ({
  type: 'tool-input-delta',
  toolCallId: 'c',
  inputTextDelta: text,
});
export const call = {
  type: 'tool-input-available',
  toolCallId: 'c',
  toolName: 'look',
  input: { a: 1 },
};
export const badCall = { ...call, type: 'tool-input-error', errorText: 'no such tool' };
export const output = { type: 'tool-output-available', toolCallId: 'c', output: 1 };
export const outputError = { type: 'tool-output-error', toolCallId: 'c', errorText: 'broke' };
export const ask = { type: 'tool-approval-request', toolCallId: 'c', approvalId: 'a' };
export const denied = { type: 'tool-output-denied', toolCallId: 'c' };
export const answer = { type: 'tool-approval-response', approvalId: 'a', approved: true };
export const dynamic = { dynamic: true };
export const data = (value: unknown, type = 'data-x') => ({ type, data: value });
export const meta = (value: unknown) => ({ type: 'message-metadata', messageMetadata: value });

type AnyPart = Record<string, unknown>;
export const partsOf = (result: ClientResult) => (result.message?.parts ?? []) as AnyPart[];
const only = (result: ClientResult) => partsOf(result)[0] ?? {};
const toolsOf = (result: ClientResult) => partsOf(result).filter((part) => part.toolCallId === 'c');
const SETTLED = ['done', 'output-available', 'output-error', 'output-denied', 'approval-requested'];
export const unsettled = (result: ClientResult) =>
  partsOf(result).some((part) => part.state !== undefined && !SETTLED.includes(String(part.state)));
export const notOneTool = (result: ClientResult) =>
  toolsOf(result).length !== 1 || unsettled(result);
export const assistants = (result: ClientResult) =>
  result.messages.filter((message) => message.role === 'assistant').length;

export type Row = {
  /** The rule; further codes the same chunks may earn are named behind it. */
  codes: [ViolationCode, ...ViolationCode[]];
  name: string;
  chunks: unknown[];
  /** What the real clients do; one word for all of them, or by client where they differ. */
  truth: Outcome | Partial<Record<ClientName, Outcome>>;
  /** How to see in the folded message that it is not what the sender meant. */
  damage?: (result: ClientResult) => boolean;
  /** Reported although clients bear it, and why. */
  law?: string;
};

const cyclic: { self?: unknown } = {};
cyclic.self = cyclic;
const hostile = Object.defineProperty({ type: 'data-x' }, 'data', {
  enumerable: true,
  get() {
    throw new Error('hands off');
  },
});
const before7: Row['truth'] = { 'ai@5': 'dies', 'ai@6.0.9': 'dies', 'ai@6': 'dies' };
const dies = 'dies' as const;
const damaged = 'damaged' as const;

// biome-ignore format: a table
export const refused: Row[] = [
  ...[null, undefined, 'text', 7, [], {}, { type: 1 }].map((chunk): Row => (
    { codes: ['not-a-chunk'], name: `${JSON.stringify(chunk)} as a chunk`, chunks: turn(chunk), truth: dies })),
  { codes: ['not-a-chunk', 'not-json'], name: 'a function as a chunk', chunks: turn(() => 1), truth: dies },

  { codes: ['not-json'], name: 'a BigInt', chunks: turn(data({ n: 1n })), truth: dies },
  { codes: ['not-json'], name: 'a cycle', chunks: turn({ ...output, output: cyclic }), truth: dies },
  { codes: ['not-json'], name: 'a property that throws', chunks: turn(hostile), truth: dies },
  { codes: ['not-json', 'missing-field'], name: 'a function for a value', chunks: turn(data(() => 1)), truth: dies },
  { codes: ['not-json'], name: 'NaN', chunks: turn(data([Number.NaN])), truth: damaged, damage: (r) => JSON.stringify(only(r).data) === '[null]' },
  { codes: ['not-json'], name: 'a Map', chunks: turn(data(new Map([['a', 1]]))), truth: damaged, damage: (r) => JSON.stringify(only(r).data) === '{}' },

  { codes: ['forbidden-key'], name: 'a key "__proto__"', chunks: turn(data(JSON.parse('[{"a":{"__proto__":1}}]'))), truth: dies },
  { codes: ['forbidden-key'], name: 'a key "constructor" with a "prototype"', chunks: turn({ ...call, input: { constructor: { prototype: 1 } } }, output), truth: dies },
  { codes: ['forbidden-key'], name: 'a key "constructor" that is null', chunks: turn(data({ constructor: null })), truth: { 'ai@6.0.9': dies } },

  ...['step-start', 'constructor', '__proto__', 'data', 'tool-call', ''].map((type): Row => (
    { codes: ['unknown-type'], name: `the type "${type}"`, chunks: turn({ type }), truth: dies })),

  { codes: ['chunk-too-new'], name: 'an approval request', chunks: turn(call, ask), truth: { 'ai@5': dies } },
  { codes: ['chunk-too-new'], name: 'a denied call', chunks: turn(call, denied), truth: { 'ai@5': dies } },
  { codes: ['chunk-too-new'], name: 'an approval response', chunks: turn(call, ask, answer, output), truth: before7 },
  { codes: ['chunk-too-new'], name: 'custom', chunks: turn({ type: 'custom', kind: 'a.b' }), truth: before7 },
  { codes: ['chunk-too-new'], name: 'reasoning-file', chunks: turn({ type: 'reasoning-file', url: 'u', mediaType: 'm' }), truth: before7 },
  { codes: ['chunk-too-new'], name: 'reset-step', chunks: turn(step, open(), { type: 'reset-step' }), truth: before7 },
  { codes: ['chunk-too-new'], name: 'steering-message', chunks: turn({ type: 'steering-message', id: 's', parts: [] }), truth: before7 },

  { codes: ['missing-field'], name: 'data without data', chunks: turn({ type: 'data-x' }), truth: dies },
  { codes: ['missing-field'], name: 'data that is undefined', chunks: turn(data(undefined)), truth: dies },
  { codes: ['missing-field'], name: 'an output without output', chunks: turn(call, { ...output, output: undefined }), truth: dies },
  { codes: ['missing-field'], name: 'an input without input', chunks: turn({ ...call, input: undefined }, output), truth: dies },
  { codes: ['missing-field'], name: 'a delta without delta', chunks: turn(open(), { type: 'text-delta', id: 't' }, close()), truth: dies },
  { codes: ['missing-field'], name: 'metadata without metadata', chunks: turn({ type: 'message-metadata' }), truth: dies },
  { codes: ['wrong-type'], name: 'an id that is a number', chunks: turn({ type: 'text-start', id: 1 }), truth: dies },
  { codes: ['wrong-type'], name: 'a delta that is null', chunks: turn(open(), { ...delta(), delta: null }, close()), truth: dies },
  { codes: ['wrong-type'], name: 'provider metadata one level deep', chunks: turn({ ...open(), providerMetadata: { a: 1 } }, close()), truth: dies },
  { codes: ['wrong-type'], name: 'a tool title that is a number', chunks: turn({ ...call, title: 1 }, output), truth: { 'ai@6.0.9': dies, 'ai@6': dies, 'ai@7': dies } },
  { codes: ['wrong-type', 'extra-field'], name: 'an abort reason that is a number', chunks: turn({ type: 'abort', reason: 1 }), truth: { 'ai@6.0.9': dies, 'ai@6': dies, 'ai@7': dies } },
  { codes: ['wrong-type', 'extra-field'], name: 'citations that are not', chunks: turn(open(), { ...close(), citations: [1] }), truth: { 'ai@6.0.9': dies, 'ai@7': dies } },
  { codes: ['wrong-type', 'chunk-too-new'], name: 'a list with a hole', chunks: turn({ type: 'steering-message', id: 's', parts: new Array(1) }), truth: dies },
  { codes: ['null-field'], name: 'a title that is null', chunks: turn({ type: 'source-url', sourceId: 's', url: 'u', title: null }), truth: dies },
  { codes: ['null-field'], name: 'provider metadata that is null', chunks: turn({ ...open(), providerMetadata: null }, close()), truth: dies },
  { codes: ['null-field'], name: 'a finish reason that is null', chunks: [start, { type: 'finish', finishReason: null }], truth: dies },
  { codes: ['null-field'], name: 'a message id that is null', chunks: [{ type: 'start', messageId: null }, finish], truth: dies },
  { codes: ['bad-finish-reason'], name: 'end_turn', chunks: [start, { type: 'finish', finishReason: 'end_turn' }], truth: dies },
  { codes: ['bad-finish-reason'], name: 'unknown', chunks: [start, { type: 'finish', finishReason: 'unknown' }], truth: { 'ai@6.0.9': dies, 'ai@6': dies, 'ai@7': dies } },
  { codes: ['bad-finish-reason'], name: 'interrupted', chunks: [start, { type: 'finish', finishReason: 'interrupted' }], truth: before7 },
  { codes: ['bad-finish-reason'], name: 'a bad reason behind an error', chunks: [start, failure, { type: 'finish', finishReason: 'end_turn' }], truth: 'fine', law: 'what no client knows has no place in a stream, read or not' },
  { codes: ['extra-field'], name: 'a field nobody knows', chunks: turn({ ...step, label: 'x' }), truth: { 'ai@6.0.9': dies } },
  { codes: ['extra-field'], name: 'an abort reason', chunks: turn({ type: 'abort', reason: 'x' }), truth: { 'ai@6.0.9': dies } },
  { codes: ['extra-field'], name: 'tool metadata', chunks: turn({ ...call, toolMetadata: { a: 1 } }, output), truth: { 'ai@6.0.9': dies } },

  { codes: ['no-start'], name: 'no start at all', chunks: [open(), close(), finish], truth: 'fine', law: 'the client invents an id, and a resume duplicates the message' },
  { codes: ['no-start', 'no-finish'], name: 'nothing at all', chunks: [], truth: 'fine', law: 'truncation must not pass for an answer' },
  { codes: ['no-start'], name: 'a start that comes late', chunks: [open(), close(), start, finish], truth: damaged, damage: (r) => assistants(r) !== 1 },
  { codes: ['no-message-id'], name: 'start without messageId', chunks: [{ type: 'start' }, finish], truth: 'fine', law: 'the client invents an id, and a resume duplicates the message' },
  { codes: ['second-start'], name: 'the same start again', chunks: turn(open(), close(), start), truth: 'fine', law: 'a stream is one message' },
  { codes: ['second-start'], name: 'a start of another message', chunks: turn(open(), close(), { ...start, messageId: 'n' }), truth: damaged, damage: (r) => assistants(r) !== 1 },
  { codes: ['after-error'], name: 'text behind an error', chunks: turn(failure, open(), close()), truth: damaged, damage: (r) => partsOf(r).length === 0 },
  { codes: ['after-error'], name: 'a delta of nothing behind an error', chunks: turn(failure, delta()), truth: damaged, damage: (r) => partsOf(r).length === 0 },
  { codes: ['after-finish'], name: 'text behind finish', chunks: [...turn(), open(), close()], truth: 'fine', law: 'servers and logs close a turn at its finish' },
  { codes: ['after-finish'], name: 'a second finish', chunks: [...turn(), finish], truth: 'fine', law: 'a turn ends once' },
  { codes: ['after-finish'], name: 'text behind error and finish', chunks: [...turn(failure), open(), close()], truth: damaged, damage: (r) => partsOf(r).length === 0 },
  { codes: ['no-finish'], name: 'a body that just ends', chunks: [start, open(), close()], truth: 'fine', law: 'truncation must not pass for an answer' },
  { codes: ['no-finish'], name: 'an error with no finish', chunks: [start, failure], truth: 'fine', law: 'every turn ends with finish' },
  { codes: ['metadata-not-object'], name: 'an object merged into a string', chunks: turn(meta('abc'), meta({ a: 1 })), truth: dies },
  { codes: ['metadata-not-object'], name: 'a string merged into an object', chunks: turn(meta({ a: 1 }), meta('abc')), truth: damaged, damage: (r) => r.message?.metadata !== 'abc' },
  { codes: ['metadata-not-object'], name: 'a list merged into an object', chunks: turn(meta({ a: 1 }), meta([])), truth: damaged, damage: (r) => !Array.isArray(r.message?.metadata) },

  { codes: ['part-not-open'], name: 'a delta without start', chunks: turn(delta()), truth: dies },
  { codes: ['part-not-open'], name: 'an end without start', chunks: turn(close()), truth: dies },
  { codes: ['part-not-open'], name: 'a delta after the end', chunks: turn(open(), close(), delta()), truth: dies },
  { codes: ['part-not-open', 'part-left-open'], name: 'a reasoning delta for a text', chunks: turn(open(), { ...delta(), type: 'reasoning-delta' }), truth: dies },
  { codes: ['part-not-open'], name: 'a reasoning end without start', chunks: turn({ type: 'reasoning-end', id: 't' }), truth: dies },
  { codes: ['part-already-open'], name: 'a text started twice', chunks: turn(open(), delta(), open(), delta(), close()), truth: damaged, damage: unsettled },
  { codes: ['part-already-open'], name: 'reasoning started twice', chunks: turn(think, think, { type: 'reasoning-end', id: 't' }), truth: damaged, damage: unsettled },
  { codes: ['part-across-step', 'part-not-open'], name: 'a text ended after finish-step', chunks: turn(step, open(), stepEnd, close()), truth: before7 },
  { codes: ['part-across-step', 'part-not-open'], name: 'reasoning that goes on after finish-step', chunks: turn(step, think, stepEnd, step, { type: 'reasoning-delta', id: 't', delta: 'x' }, { type: 'reasoning-end', id: 't' }), truth: before7 },
  { codes: ['part-across-step', 'part-left-open'], name: 'a text never ended in its step', chunks: turn(step, open(), stepEnd), truth: damaged, damage: unsettled },
  { codes: ['part-across-step', 'chunk-too-new'], name: 'a text of an earlier step at reset-step', chunks: turn(step, open(), step, { type: 'reset-step' }), truth: { ...before7, 'ai@7': damaged }, damage: unsettled },
  { codes: ['part-left-open'], name: 'a text never ended', chunks: turn(open(), delta()), truth: damaged, damage: unsettled },
  { codes: ['part-left-open'], name: 'reasoning open at an error', chunks: turn(think, failure), truth: damaged, damage: unsettled },

  ...[output, outputError].map((chunk): Row => (
    { codes: ['tool-unknown'], name: `${chunk.type} for no call`, chunks: turn(chunk), truth: dies })),
  ...[ask, denied].map((chunk): Row => (
    { codes: ['tool-unknown', 'chunk-too-new'], name: `${chunk.type} for no call`, chunks: turn(chunk), truth: dies })),
  { codes: ['tool-unknown', 'chunk-too-new'], name: 'an output for a call that reset-step took away', chunks: turn(step, call, { type: 'reset-step' }, output), truth: dies },
  { codes: ['tool-delta-without-start'], name: 'a tool delta for no call', chunks: turn(args()), truth: dies },
  { codes: ['tool-delta-without-start'], name: 'a tool delta for a call that was not streamed', chunks: turn(call, args(), output), truth: dies },
  { codes: ['tool-delta-without-start', 'chunk-too-new'], name: 'a tool delta for a start that reset-step took away', chunks: turn(step, input, { type: 'reset-step' }, call, args(), output), truth: dies },
  { codes: ['tool-delta-late'], name: 'a tool delta after the input', chunks: turn(input, call, args('{"b":2}'), output), truth: damaged, damage: (r) => JSON.stringify(only(r).input) !== '{"a":1}' },
  { codes: ['tool-delta-late'], name: 'a tool delta after the output', chunks: turn(input, call, output, args()), truth: damaged, damage: unsettled },
  { codes: ['tool-across-step'], name: 'an input that becomes available in the next step', chunks: turn(step, input, stepEnd, step, call, output), truth: { 'ai@5': damaged, 'ai@6': damaged, 'ai@7': damaged }, damage: notOneTool },
  { codes: ['tool-across-step'], name: 'an input that streams on in the next step', chunks: turn(step, input, step, args(), call, output), truth: { 'ai@5': damaged, 'ai@6': damaged, 'ai@7': damaged }, damage: notOneTool },
  { codes: ['tool-across-step'], name: 'an input that fails in the next step', chunks: turn(step, input, step, badCall), truth: { 'ai@5': damaged, 'ai@6': damaged, 'ai@7': damaged }, damage: notOneTool },
  { codes: ['tool-reused'], name: 'a second call of the same id', chunks: turn(call, output, { ...call, input: 2 }, { ...output, output: 2 }), truth: damaged, damage: (r) => toolsOf(r).length !== 2 },
  { codes: ['tool-reused'], name: 'a second call of the same id in the next step', chunks: turn(step, call, output, stepEnd, step, input, call, { ...output, output: 2 }), truth: { 'ai@6.0.9': damaged }, damage: (r) => toolsOf(r).length !== 2 },
  { codes: ['tool-already-ended'], name: 'a second output', chunks: turn(call, output, { ...output, output: 2 }), truth: damaged, damage: (r) => toolsOf(r)[0]?.output !== 1 },
  { codes: ['tool-already-ended'], name: 'an error behind the output', chunks: turn(call, output, outputError), truth: damaged, damage: (r) => toolsOf(r)[0]?.output !== 1 },
  { codes: ['tool-already-ended'], name: 'an output behind the input error', chunks: turn(badCall, output), truth: damaged, damage: (r) => toolsOf(r)[0]?.errorText !== 'no such tool' },
  { codes: ['tool-already-ended', 'chunk-too-new'], name: 'an approval request behind the output', chunks: turn(call, output, ask), truth: { 'ai@5': dies, 'ai@6.0.9': damaged, 'ai@6': damaged, 'ai@7': damaged }, damage: (r) => toolsOf(r)[0]?.state !== 'output-available' },
  { codes: ['tool-already-ended', 'chunk-too-new'], name: 'an approval response behind the output', chunks: turn(call, ask, output, answer), truth: { ...before7, 'ai@7': damaged }, damage: (r) => toolsOf(r)[0]?.state !== 'output-available' },
  { codes: ['tool-dynamic-mismatch'], name: 'a dynamic start of a static call', chunks: turn({ ...input, ...dynamic }, call, output), truth: damaged, damage: notOneTool },
  { codes: ['tool-dynamic-mismatch'], name: 'a static start of a dynamic call', chunks: turn(input, { ...call, ...dynamic }, { ...output, ...dynamic }), truth: damaged, damage: notOneTool },
  { codes: ['tool-dynamic-mismatch'], name: 'a dynamic start and a static input error', chunks: turn({ ...input, ...dynamic }, badCall), truth: { 'ai@5': damaged, 'ai@6.0.9': damaged }, damage: notOneTool },
  { codes: ['tool-dynamic-mismatch'], name: 'the output of a dynamic call without the flag', chunks: turn({ ...call, ...dynamic }, output), truth: { 'ai@5': dies } },
  { codes: ['tool-dynamic-mismatch'], name: 'the error of a dynamic call without the flag', chunks: turn({ ...call, ...dynamic }, outputError), truth: { 'ai@5': dies } },
  { codes: ['tool-dynamic-mismatch'], name: 'the output of a static call with the flag', chunks: turn(call, { ...output, ...dynamic }), truth: { 'ai@5': dies } },
  { codes: ['tool-name-mismatch'], name: 'a call that changes its name', chunks: turn(input, { ...call, toolName: 'find' }, output), truth: { 'ai@5': damaged, 'ai@6.0.9': damaged }, damage: (r) => toolsOf(r)[0]?.type !== 'tool-find' },
  { codes: ['tool-left-open'], name: 'an input that never becomes available', chunks: turn(input), truth: damaged, damage: unsettled },
  { codes: ['tool-left-open'], name: 'a call that never gets its output', chunks: turn(call), truth: damaged, damage: unsettled },
  { codes: ['tool-left-open'], name: 'a call open at an error', chunks: turn(call, failure), truth: damaged, damage: unsettled },
  { codes: ['tool-left-open'], name: 'only a preliminary output', chunks: turn(call, { ...output, preliminary: true }), truth: damaged, damage: (r) => toolsOf(r)[0]?.preliminary === true },
  { codes: ['tool-left-open', 'chunk-too-new'], name: 'a call approved and never run', chunks: turn(call, ask, answer), truth: { ...before7, 'ai@7': damaged }, damage: unsettled },
  { codes: ['tool-already-ended', 'tool-reused', 'chunk-too-new'], name: 'an approval id used again, whose response goes to the first call', chunks: turn(step, call, ask, answer, output, step, call, ask, answer, output), truth: { ...before7, 'ai@7': damaged }, damage: unsettled },
  { codes: ['tool-already-ended', 'tool-reused', 'chunk-too-new'], name: 'an output that falls to the first call when reset-step takes the second', chunks: turn(step, call, output, step, call, { type: 'reset-step' }, { ...output, output: 2 }), truth: { ...before7, 'ai@7': damaged }, damage: (r) => toolsOf(r)[0]?.output !== 1 },
  { codes: ['approval-reused', 'chunk-too-new'], name: 'two calls that wait for one approval', chunks: turn(call, { ...call, toolCallId: 'd' }, ask, { ...ask, toolCallId: 'd' }), truth: { 'ai@5': dies }, law: 'one answer of the person answers both' },
  { codes: ['approval-unknown', 'chunk-too-new'], name: 'an approval response to nothing', chunks: turn(call, answer, output), truth: dies },
];

const all = { providerMetadata: { p: { n: null, list: [1, { a: true }] } } };
const tool = { providerExecuted: true };
const url = 'https://a.test/';
const late = { toolMetadata: { a: [1] }, ...all };
const approvalDetails = { approvalDescriptor: null, inputSchemaInput: {}, signature: 's' };
const citation = {
  source: { type: 'source', sourceType: 'url', id: 's', url, title: 't', ...all },
  startIndex: 0,
  endIndex: 3,
  citedText: 'abc',
};
const document = { type: 'source', sourceType: 'document', id: 's', mediaType: 'm', title: 't' };
const steeringParts = [
  { type: 'text', text: 'x', ...all },
  { type: 'file', mediaType: 'm', url, filename: 'f', providerReference: { p: 'r' }, ...all },
];

/** Every chunk with every field it may have, between what it needs; `majors` are those that take it. */
export type Form = { chunk: Wire; before?: Wire[]; after?: Wire[]; majors?: AiSdkMajor[] };
const sloppy: AiSdkMajor[] = [5, 7];
// biome-ignore format: a table
export const forms: Form[] = [
  { chunk: { type: 'message-metadata', messageMetadata: { a: 1 } } },
  { chunk: step },
  { chunk: stepEnd },
  { chunk: { type: 'abort' } },
  { chunk: { type: 'abort', reason: 'stopped' }, majors: sloppy },
  ...(['text', 'reasoning'] as const).flatMap((kind): Form[] => [
    { chunk: { type: `${kind}-start`, id: 'p', ...all }, after: [{ type: `${kind}-end`, id: 'p' }] },
    { before: [{ type: `${kind}-start`, id: 'p' }], chunk: { type: `${kind}-delta`, id: 'p', delta: 'x', ...all }, after: [{ type: `${kind}-end`, id: 'p' }] },
    { before: [{ type: `${kind}-start`, id: 'p' }], chunk: { type: `${kind}-end`, id: 'p', ...all } },
  ]),
  { before: [open()], chunk: { ...close(), citations: [citation, { source: document }] }, majors: sloppy },
  { chunk: { ...input, ...tool, dynamic: false, title: 't' }, after: [call, output] },
  { chunk: { ...input, ...late, inputEncoding: 'json' }, after: [call, output], majors: sloppy },
  { before: [input], chunk: args(), after: [call, output] },
  { chunk: { ...call, ...tool, ...all, dynamic: false, title: 't' }, after: [output] },
  { chunk: { ...call, ...late }, after: [output], majors: sloppy },
  { chunk: { ...badCall, ...tool, ...all, dynamic: false, title: 't' } },
  { chunk: { ...badCall, ...late }, majors: sloppy },
  { before: [call], chunk: { ...output, ...tool, dynamic: false, preliminary: false } },
  { before: [call], chunk: { ...output, ...late }, majors: sloppy },
  { before: [call], chunk: { ...outputError, ...tool, dynamic: false } },
  { before: [call], chunk: { ...outputError, ...late }, majors: sloppy },
  { before: [call], chunk: ask, majors: [6, 7] },
  { before: [call], chunk: { ...ask, ...approvalDetails, reason: 'r', isAutomatic: true }, majors: [7] },
  { before: [call], chunk: denied, majors: [6, 7] },
  { before: [call, ask], chunk: { ...answer, ...tool, ...all, reason: 'r' }, after: [output], majors: [7] },
  { chunk: { type: 'source-url', sourceId: 's', url, title: 't', ...all } },
  { chunk: { type: 'source-document', sourceId: 's', mediaType: 'm', title: 't', filename: 'f', ...all } },
  { chunk: { type: 'file', url, mediaType: 'm', ...all } },
  { chunk: { type: 'data-x', id: 'd', data: { a: 1 }, transient: false } },
  { chunk: { type: 'custom', kind: 'a.b', ...all }, majors: [7] },
  { chunk: { type: 'reasoning-file', url, mediaType: 'm', ...all }, majors: [7] },
  { chunk: { type: 'reset-step' }, majors: [7] },
  { chunk: { type: 'steering-message', id: 's', parts: steeringParts }, majors: [7] },
];

type Accepted = {
  name: string;
  chunks: unknown[];
  majors?: AiSdkMajor[];
  meant?: (result: ClientResult) => boolean;
};
// biome-ignore format: a table
export const accepted: Accepted[] = [
  ...forms.map(({ before = [], chunk, after = [], majors }) => (
    { name: `${chunk.type} with ${Object.keys(chunk).slice(1).join(', ') || 'nothing'}`, chunks: turn(...before, chunk, ...after), majors })),
  { name: 'start and finish with all they have', chunks: [{ ...start, messageMetadata: { a: { b: 1 } } }, { type: 'finish', finishReason: 'stop', messageMetadata: { a: { c: 2 } } }], meant: (r) => JSON.stringify(r.message?.metadata) === '{"a":{"b":1,"c":2}}' },
  ...['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other'].map((finishReason) => ({ name: `the finish reason ${finishReason}`, chunks: [start, { type: 'finish', finishReason }] })),
  { name: 'the finish reason unknown', chunks: [start, { type: 'finish', finishReason: 'unknown' }], majors: [5] },
  { name: 'the finish reason interrupted', chunks: [start, { type: 'finish', finishReason: 'interrupted' }], majors: [7] },
  { name: 'metadata that is null', chunks: [{ ...start, messageMetadata: null }, meta(null), meta('abc'), meta(null), finish], meant: (r) => r.message?.metadata === 'abc' },
  { name: 'optional fields that are undefined', chunks: turn({ ...open(), providerMetadata: undefined, extra: undefined }, { ...close(), providerMetadata: { p: undefined } }) },
  { name: 'undefined inside of values', chunks: turn(data({ a: undefined, list: [undefined] })), meant: (r) => JSON.stringify(only(r).data) === '{"list":[null]}' },
  { name: 'null for an input, an output and data', chunks: turn({ ...call, input: null }, { ...output, output: null }, data(null)) },
  { name: 'a date and an object with toJSON', chunks: turn(data([new Date(0), { toJSON: () => 'x' }])), meant: (r) => JSON.stringify(only(r).data) === '["1970-01-01T00:00:00.000Z","x"]' },
  { name: 'a chunk that is made by toJSON', chunks: turn({ toJSON: () => data(1) }), meant: (r) => only(r).data === 1 },
  { name: 'keys that only look forbidden', chunks: turn(data({ constructor: { a: 1 }, prototype: 1 }), data('"__proto__":')) },
  { name: 'ids named like what objects inherit', chunks: turn(open('__proto__'), delta('x', '__proto__'), close('__proto__'), { ...think, id: 'constructor' }, { type: 'reasoning-end', id: 'constructor' }) },
  { name: 'a text id used again once it has ended', chunks: turn(step, open(), delta(), close(), stepEnd, step, open(), delta(), close(), stepEnd), meant: (r) => partsOf(r).filter((part) => part.text === 'abc').length === 2 },
  { name: 'two texts and a reasoning of one id at once', chunks: turn(open(), open('u'), think, delta(), delta('x', 'u'), close('u'), { type: 'reasoning-end', id: 't' }, close()) },
  { name: 'a text open across start-step', chunks: turn(open(), step, delta(), close()), meant: (r) => only(r).text === 'abc' },
  { name: 'a text open across finish-step', chunks: turn(step, open(), stepEnd, step, delta(), close(), stepEnd), majors: [7], meant: (r) => partsOf(r)[1]?.text === 'abc' },
  { name: 'steps without ends and ends without steps', chunks: turn(stepEnd, step, step) },
  { name: 'an error and a finish', chunks: turn(open(), close(), failure), meant: (r) => r.status === 'error' && partsOf(r).length === 1 },
  { name: 'an abort', chunks: turn(open(), close(), { type: 'abort' }) },
  { name: 'a tool streamed, called and answered', chunks: turn(input, args('{"a"'), args(':1}'), call, output), meant: (r) => !notOneTool(r) && only(r).output === 1 },
  { name: 'a tool answered in a later step', chunks: turn(step, call, stepEnd, step, output), meant: (r) => !notOneTool(r) },
  { name: 'a streaming input given up in a later step', chunks: turn(step, input, args('{'), stepEnd, step, outputError), meant: (r) => !notOneTool(r) },
  { name: 'a tool input that starts again', chunks: turn(input, args('{'), input, args(), call, output), meant: (r) => !notOneTool(r) },
  { name: 'a call announced again with another flag', chunks: turn({ ...call, ...tool }, { ...call, providerExecuted: false }, output), meant: (r) => !notOneTool(r) && only(r).providerExecuted === false },
  { name: 'preliminary outputs', chunks: turn(call, { ...output, output: 0, preliminary: true }, output), meant: (r) => only(r).output === 1 && only(r).preliminary === undefined },
  { name: 'an input error confirmed by an output error', chunks: turn(input, badCall, outputError), meant: (r) => !notOneTool(r) && only(r).errorText === 'broke' },
  { name: 'a dynamic tool', chunks: turn({ ...input, ...dynamic }, args(), { ...call, ...dynamic }, { ...output, ...dynamic }), meant: (r) => !notOneTool(r) && only(r).type === 'dynamic-tool' },
  { name: 'a dynamic tool that errs', chunks: turn({ ...badCall, ...dynamic }, { ...outputError, ...dynamic }), meant: (r) => !notOneTool(r) },
  { name: 'a dynamic tool that changes its name', chunks: turn({ ...input, ...dynamic }, { ...call, ...dynamic, toolName: 'find' }, { ...output, ...dynamic }), meant: (r) => only(r).toolName === 'find' },
  { name: 'a dynamic call whose output has no flag', chunks: turn({ ...call, ...dynamic }, output), majors: [6, 7], meant: (r) => !notOneTool(r) },
  { name: 'a static tool that changes its name', chunks: turn(input, { ...call, toolName: 'find' }, output), majors: [7], meant: (r) => only(r).type === 'tool-find' },
  { name: 'a call id used again in a later step', chunks: turn(step, call, output, step, call, output), majors: [5, 7], meant: (r) => toolsOf(r).length === 2 && !unsettled(r) },
  { name: 'an approval asked for and left open', chunks: turn(step, call, ask, stepEnd), majors: [6, 7], meant: (r) => toolsOf(r)[0]?.state === 'approval-requested' },
  { name: 'an approval refused', chunks: turn(call, ask, denied), majors: [6, 7], meant: (r) => only(r).state === 'output-denied' },
  { name: 'an approval asked for, given and run', chunks: turn(call, ask, answer, output), majors: [7], meant: (r) => only(r).state === 'output-available' },
  { name: 'a call announced again between request and response', chunks: turn(call, ask, call, answer, output), majors: [7], meant: (r) => only(r).state === 'output-available' },
  { name: 'a step taken back with all that was open in it', chunks: turn(step, open(), input, { type: 'reset-step' }, open(), close(), call, output), majors: [7], meant: (r) => partsOf(r).length === 3 },
  { name: 'data replaced in place', chunks: turn({ ...data(1), id: 'd' }, { ...data(2), id: 'd' }, { ...data(3, 'data-y'), id: 'd' }), meant: (r) => partsOf(r).map((part) => part.data).join() === '2,3' && r.dataParts.length === 3 },
  { name: 'transient data', chunks: turn({ ...data(1), transient: true }), meant: (r) => partsOf(r).length === 0 && r.dataParts.length === 1 },
  { name: 'data with no name', chunks: turn(data(1, 'data-')) },
];
