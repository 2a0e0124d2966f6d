import { describe, expect, it } from 'vitest';
import { readJsonl } from '../../../test/jsonl.ts';
import { describeTranslator } from '../../../test/translator-conformance.ts';
import type { Chunk } from '../../core/chunks.ts';
import { foldChunks } from '../../core/fold.ts';
import { createOpenCodeTranslator, type OpenCodeOptions } from './translate.ts';

const FIXTURES = new URL('../../../test/fixtures/opencode/', import.meta.url);

describeTranslator('OpenCode', FIXTURES, createOpenCodeTranslator);

type Options = { options?: OpenCodeOptions };

function play(events: unknown[], options: OpenCodeOptions = {}) {
  const translator = createOpenCodeTranslator({ messageId: 'm', ...options });
  const chunks = events.flatMap((event) => translator.push(event));
  return { translator, chunks };
}

function playFixture(name: string) {
  const [first, ...rest] = readJsonl(new URL(`${name}.events.jsonl`, FIXTURES));
  const { options } = first as Options;
  return options ? play(rest, options) : play([first, ...rest]);
}

/** A message in a few words, so that what matters can be seen. */
function outline(chunks: Chunk[]): string[] {
  return foldChunks(chunks).parts.map((part) => {
    const { type, text, state, errorText, data } = part as Record<string, unknown>;
    const { status, answer } = (data ?? {}) as Record<string, unknown>;
    return [type, text ?? state, errorText, status, answer].filter(Boolean).join(': ');
  });
}

const ID = { sessionID: 's' };
const say = (type: string, properties: object) => ({ type, properties: { ...ID, ...properties } });
const message = (id: string, role: string, more: object = {}) =>
  say('message.updated', { info: { ...ID, id, role, ...more } });
const part = (id: string, messageID: string, more: object) =>
  say('message.part.updated', { part: { ...ID, id, messageID, ...more } });
const text = (id: string, messageID: string, words: string) =>
  part(id, messageID, { type: 'text', text: words });
const delta = (partID: string, words: string) =>
  say('message.part.delta', { messageID: 'm2', partID, field: 'text', delta: words });
const IDLE = say('session.idle', {});
const BEGIN = [message('m1', 'user'), text('p1', 'm1', 'Question'), message('m2', 'assistant')];
const DONE = message('m2', 'assistant', { finish: 'stop', time: { completed: 1 } });

describe('what OpenCode said, as a message', () => {
  it.each([
    ['recorded-text', ['step-start', 'text: Hello there.']],
    [
      'recorded-reasoning-and-tool',
      [
        'step-start',
        'reasoning: I should look.',
        'text: Looking.',
        'tool-read: output-available',
        'step-start',
        'text: It says hello.',
      ],
    ],
    [
      'recorded-permission-allowed',
      [
        'step-start',
        'text: Running.',
        'tool-bash: output-available',
        'data-question: answered: Allow once',
        'step-start',
        'text: It ran.',
      ],
    ],
    [
      'recorded-permission-denied',
      [
        'step-start',
        'text: Running.',
        'tool-bash: output-error: The user rejected permission to use this specific tool call.',
        'data-question: answered: Deny',
      ],
    ],
    [
      'recorded-permission-open-when-aborted',
      [
        'step-start',
        'tool-bash: output-error: The tool gave no result.',
        'data-question: withdrawn',
      ],
    ],
    [
      'recorded-question',
      [
        'step-start',
        'tool-question: output-available',
        'data-question: answered: Blue',
        'step-start',
        'text: Blue it is.',
      ],
    ],
    [
      'recorded-subagent',
      [
        'step-start',
        'tool-task: output-available',
        'data-question: answered: Allow once',
        'step-start',
        'text: Somebody went.',
      ],
    ],
    [
      'recorded-same-call-id-twice',
      [
        'step-start',
        'tool-read: output-available',
        'step-start',
        'tool-read: output-available',
        'step-start',
        'text: Still the same.',
      ],
    ],
    ['recorded-abort', ['step-start', 'text: On and ']],
    ['recorded-trace-text', ['step-start', 'text: Hello there, this is a streamed fake answer.']],
  ])('%s', (name, expected) => {
    expect(outline(playFixture(name).chunks)).toEqual(expected);
  });

  it.each([
    ['recorded-text', { outcome: 'finished', totalCostUsd: 0.0001 }],
    ['recorded-abort', { outcome: 'stopped', reason: 'aborted' }],
    ['recorded-retry-aborted', { outcome: 'stopped', reason: 'aborted' }],
    ['recorded-provider-error', { outcome: 'failed', code: 'run-failed' }],
  ])('%s ends as it did', (name, metadata) => {
    const { translator, chunks } = playFixture(name);
    expect(foldChunks(chunks).metadata).toMatchObject(metadata);
    expect(translator.stats).toEqual({ unknown: {}, malformed: {} });
  });

  it('adds up what all steps used, those of a subagent included', () => {
    const usage = { inputTokens: 400, outputTokens: 80, totalTokens: 480 };
    const { metadata } = foldChunks(playFixture('recorded-subagent').chunks);
    expect(metadata).toMatchObject({ usage });
  });

  it('shows the words of the provider', () => {
    expect(playFixture('recorded-provider-error').chunks).toContainEqual({
      type: 'error',
      errorText: 'Incorrect API key provided.',
    });
  });

  it('tells transiently that the model is asked again', () => {
    expect(playFixture('recorded-retry-aborted').chunks).toContainEqual({
      type: 'data-agent-status',
      transient: true,
      data: { status: 'thinking', detail: 'Too many requests.' },
    });
  });

  it('gives the reason why the model stopped', () => {
    expect(playFixture('recorded-length').chunks.at(-1)).toMatchObject({ finishReason: 'length' });
  });
});

describe('the OpenCode translator', () => {
  it('takes a text that had no deltas from its snapshot', () => {
    const { chunks } = play([...BEGIN, text('p2', 'm2', 'Answer'), DONE, IDLE]);
    expect(outline(chunks)).toEqual(['step-start', 'text: Answer']);
  });

  it('tells only what is new in a snapshot', () => {
    const events = [text('p2', 'm2', ''), delta('p2', 'An'), text('p2', 'm2', 'Answer')];
    const { chunks } = play([...BEGIN, ...events, text('p2', 'm2', 'Answer'), DONE, IDLE]);
    expect(chunks.filter(({ type }) => type === 'text-delta')).toMatchObject([
      { delta: 'An' },
      { delta: 'swer' },
    ]);
  });

  it('leaves alone what a snapshot has other words for, or fewer', () => {
    const events = [text('p2', 'm2', ''), delta('p2', 'Answer '), text('p2', 'm2', 'Answer')];
    const { chunks } = play([...BEGIN, ...events, text('p2', 'm2', 'Else'), DONE, IDLE]);
    expect(outline(chunks)).toEqual(['step-start', 'text: Answer ']);
  });

  it('makes two parts of two parts', () => {
    const { chunks } = play([
      ...BEGIN,
      text('p2', 'm2', 'One'),
      text('p3', 'm2', 'Two'),
      DONE,
      IDLE,
    ]);
    expect(outline(chunks)).toEqual(['step-start', 'text: One', 'text: Two']);
  });

  it('says nothing of what is no answer', () => {
    const other = { sessionID: 'other' };
    const { chunks } = play(
      [
        ...BEGIN,
        text('p2', 'm0', 'Of an earlier turn'),
        say('message.updated', { info: { ...other, id: 'm3', role: 'assistant' } }),
        say('message.part.updated', {
          part: { ...other, id: 'p3', messageID: 'm3', type: 'text', text: 'Elsewhere' },
        }),
        message('m4', 'assistant', { summary: true }),
        text('p4', 'm4', 'What was said so far'),
        part('p5', 'm2', { type: 'text', text: 'Not written', synthetic: true }),
        part('p6', 'm2', { type: 'patch', hash: 'h', files: [] }),
        delta('p7', 'Of a part nobody knows'),
        say('session.error', { ...other, error: { name: 'UnknownError' } }),
        say('session.idle', other),
        say('permission.asked', { ...other, id: 'per', permission: 'bash', patterns: [] }),
        DONE,
        IDLE,
      ],
      { sessionId: 's' },
    );
    expect(chunks.map(({ type }) => type)).toEqual(['start', 'finish']);
  });

  it('does not end with an idle session before anything was said', () => {
    const { translator, chunks } = play([IDLE, message('m1', 'user'), IDLE]);
    expect(translator.ended).toBe(false);
    expect(chunks).toEqual([]);
  });

  it('skips the messages of the turns before', () => {
    const late = message('m0', 'assistant', { error: { name: 'MessageAbortedError' } });
    const { translator } = play([late, IDLE, ...BEGIN], { sessionId: 's', after: 'm0' });
    expect(translator.ended).toBe(false);
  });

  it('is not ended by what is still said of the turn before, which was aborted', () => {
    const error = { name: 'MessageAbortedError' };
    const late = [
      message('m1', 'assistant', { parentID: 'm0', error }),
      say('session.error', { error }),
      IDLE,
    ];
    const mine = [message('m2', 'user'), IDLE, message('m3', 'assistant')];
    const { translator, chunks } = play([...late, ...mine, text('p3', 'm3', 'Answer')], {
      sessionId: 's',
      after: 'm0',
    });
    expect(translator.ended).toBe(false);
    expect(chunks.filter(({ type }) => type === 'text-delta')).toMatchObject([{ delta: 'Answer' }]);
  });

  it('forgives an error that was followed by another try', () => {
    const error = { name: 'APIError', data: { message: 'Overloaded' } };
    const { chunks } = play([
      ...BEGIN,
      say('session.error', { error }),
      part('p2', 'm2', { type: 'step-start' }),
      text('p3', 'm2', 'Answer'),
      DONE,
      IDLE,
    ]);
    expect(foldChunks(chunks).metadata).toMatchObject({ outcome: 'finished' });
  });

  it('is lost with an answer that is neither finished nor failed', () => {
    const { chunks } = play([...BEGIN, text('p2', 'm2', 'Half'), IDLE]);
    expect(foldChunks(chunks).metadata).toMatchObject({ outcome: 'lost' });
  });

  it('shows the files of an answer and of its tools', () => {
    const file = { mime: 'image/png', url: 'data:image/png;base64,aGk=' };
    const state = { status: 'completed', output: 'shot', attachments: [file] };
    const { chunks } = play([
      ...BEGIN,
      part('p2', 'm2', { type: 'tool', tool: 'screenshot', callID: 'c', state }),
      part('p3', 'm2', { type: 'file', ...file }),
      part('p3', 'm2', { type: 'file', ...file }),
      DONE,
      IDLE,
    ]);
    expect(outline(chunks)).toEqual([
      'step-start',
      'tool-screenshot: output-available',
      'file',
      'file',
    ]);
  });

  it('asks several questions under ids of their own', () => {
    const questions = [{ question: 'One?', options: [{ label: 'Yes' }] }, { question: 'Two?' }];
    const asked = say('question.asked', { id: 'q', questions });
    const { chunks } = play([
      ...BEGIN,
      asked,
      asked,
      say('question.replied', { requestID: 'q', answers: [['Yes'], ['a', 'b']] }),
    ]);
    const data = chunks.filter(({ type }) => type === 'data-question');
    expect(data).toMatchObject([
      { id: 'q-1', data: { text: 'One?', options: ['Yes'], status: 'open' } },
      { id: 'q-2', data: { text: 'Two?', status: 'open' } },
      { id: 'q-1', data: { status: 'answered', answer: 'Yes' } },
      { id: 'q-2', data: { status: 'answered', answer: 'a, b' } },
    ]);
  });

  it('withdraws a question that was turned away', () => {
    const { chunks } = play([
      ...BEGIN,
      say('question.asked', { id: 'q', questions: [{ question: 'One?' }] }),
      say('question.rejected', { requestID: 'q' }),
    ]);
    expect(outline(chunks)).toEqual(['step-start', 'data-question: withdrawn']);
  });

  it('leaves reasoning out when it is not wanted', () => {
    const thought = part('p2', 'm2', { type: 'reasoning', text: 'Hm.' });
    const { chunks } = play([...BEGIN, thought, text('p3', 'm2', 'So.'), DONE, IDLE], {
      sendReasoning: false,
    });
    expect(outline(chunks)).toEqual(['step-start', 'text: So.']);
  });

  it('counts what it does not know and what is not as it should be', () => {
    const { translator } = play([
      ...BEGIN,
      { type: 'server.heartbeat', properties: {} },
      { type: 'session.next.text.delta', properties: {} },
      { type: 'never.heard.of', properties: {} },
      { type: 'message.updated', properties: { info: null } },
      { type: 'session.idle' },
      part('p2', 'm2', { type: 'text' }),
      null,
      'nonsense',
    ]);
    expect(translator.stats).toEqual({
      unknown: { 'never.heard.of': 1 },
      malformed: {
        'message.updated': 1,
        'session.idle': 1,
        'message.part.updated': 1,
        '(no type)': 2,
      },
    });
  });
});
