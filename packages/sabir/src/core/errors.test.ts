import { describe, expect, it } from 'vitest';
import { BAD_REQUEST, SabirError, toErrorText } from './errors.ts';

describe('SabirError', () => {
  it('says who should know what: operator, person, developer, machine', () => {
    const cause = new Error('Unexpected token');
    const error = new SabirError(BAD_REQUEST, 'The body is not JSON.', { cause });
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: 'SabirError',
      message: 'The body is not JSON.',
      code: 'bad-request',
      status: 400,
      retryable: false,
      userMessage: 'The request could not be understood.',
      cause,
    });
    expect(error.remedy).toContain('POST JSON');
  });

  it('has the text for people as its message where nothing more is said', () => {
    expect(new SabirError(BAD_REQUEST).message).toBe('The request could not be understood.');
  });
});

describe('toErrorText', () => {
  const fallback = 'The agent could not finish its answer.';

  it.each([
    ['a message', 'Rate limited', 'Rate limited'],
    ['an Error', new Error('Rate limited'), 'Rate limited'],
    ['an object with a message', { message: 'Rate limited' }, 'Rate limited'],
    ['our own error', new SabirError(BAD_REQUEST, 'x'), 'The request could not be understood.'],
    ['the first line', 'Rate limited\nTry later', 'Rate limited'],
    ['no stack', 'boom\n    at run (/srv/app/run.js:1:2)', 'boom'],
    ['no stack on one line', 'boom at run (/srv/app/run.js:1:2)', 'boom'],
    ['no path', "ENOENT: no such file, open '/srv/app/key.pem'", "ENOENT: no such file, open '…'"],
    ['no Windows path', 'Cannot read C:\\Users\\me\\key.pem', 'Cannot read …'],
    ['no file URL', 'Cannot import file:///srv/app/x.js', 'Cannot import …'],
    ['no relative path', 'Cannot find module ../lib/secret', 'Cannot find module …'],
    ['no home', 'Cannot read ~/keys/id', 'Cannot read …'],
    ['no position', 'Unexpected token in src/run.ts:12:3', 'Unexpected token in …'],
    ['a web address', 'GET https://api.test/v1/x failed', 'GET https://api.test/v1/x failed'],
    ['a fraction', '3/4 of the quota is used', '3/4 of the quota is used'],
    ['nothing', undefined, fallback],
    ['null', null, fallback],
    ['an empty message', new Error(''), fallback],
    ['a number', { message: 42 }, '42'],
    ['a path and nothing else', '', fallback],
  ])('gives %s', (_, error, text) => {
    expect(toErrorText(error)).toBe(text);
  });

  it('is at most 300 characters', () => {
    const text = toErrorText('x'.repeat(1_000));
    expect(text).toHaveLength(300);
    expect(text.endsWith('…')).toBe(true);
  });

  it('stays fast on hostile text', () => {
    const start = performance.now();
    for (const unit of ['/a', '../', 'a.', ' at ', '/', 'C:\\', 'x:1:'])
      toErrorText(unit.repeat(20_000));
    expect(performance.now() - start).toBeLessThan(2_000);
  });
});
