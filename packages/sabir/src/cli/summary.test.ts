import { describe, expect, it } from 'vitest';
import { createLog } from './log.ts';
import { findSecret, readSecrets, type Secret } from './secrets.ts';
import { type SummaryOptions, toSummary } from './summary.ts';

const URL = 'http://127.0.0.1:3000';
const token = (text: string, isFromEnvironment = false) =>
  readSecrets({ values: [text], source: '--token', isFromEnvironment }, 'owner');

function summarize(options: Partial<SummaryOptions> = {}): string {
  return toSummary({
    url: URL,
    agent: 'scripted',
    page: 'chat',
    database: '/data/sabir.db',
    secrets: [],
    jwtSecret: undefined,
    runnerToken: undefined,
    isOpenToAll: false,
    hasColors: false,
    ...options,
  });
}

describe('the summary', () => {
  it('says what is served, and where', () => {
    const lines = summarize({ agent: 'OpenCode in /srv, a/b' }).split('\n');
    for (const words of [
      `Page       ${URL}/`,
      `POST ${URL}/api/sessions/:id/chat`,
      `POST ${URL}/api/chat`,
      'ws://127.0.0.1:3000/api/sessions/:id/ws?role=client',
      `${URL}/healthz`,
      'Database   /data/sabir.db',
      'Agent      OpenCode in /srv, a/b',
      'everybody on this machine, as owner',
    ]) {
      expect(lines.filter((line) => line.includes(words)).length, words).toBe(1);
    }
    expect(lines.at(-2)).toMatch(/^curl -N /);
    expect(lines.join('')).not.toContain('\x1b');
  });

  it('has colours where they are wanted', () => {
    expect(summarize({ hasColors: true })).toContain('\x1b[1mSabir is up.');
  });

  it('leaves out a page that is not there', () => {
    expect(summarize({ page: 'none' })).not.toContain('Page');
    expect(summarize({ database: ':memory:' })).toContain('chats end with this process');
  });

  it('shows a token that was typed, and only names a variable that has one', () => {
    const typed = summarize({ secrets: token("olga=s3cr$'t") });
    expect(typed).toContain(`${URL}/#token=s3cr%24't`);
    expect(typed).toContain("-H 'Authorization: Bearer s3cr$'\\''t'");
    expect(typed).toContain('with a token: olga');
    const bare = summarize({ secrets: token('s3cret', true) });
    expect(bare).toContain('Bearer $SABIR_TOKEN"');
    const named = summarize({ secrets: token('olga=s3cret', true) });
    expect(named).toContain(`Bearer $${'{SABIR_TOKEN#olga=}'}"`);
    const confusing = summarize({ secrets: token('owner=s3cret', true) });
    expect(confusing).toContain('#owner=');
    for (const text of [bare, named, confusing]) expect(text).not.toContain('s3cret');
  });

  it('says whose tokens are wanted where it cannot show one', () => {
    const secrets: Secret[] = [...token('olga=aaaa', true), ...token('bob=bbbb', true)];
    for (const text of [summarize({ secrets }), summarize({ jwtSecret: 'hidden' })]) {
      expect(text).toContain('with a token in the variable TOKEN');
      expect(text).not.toMatch(/aaaa|bbbb|hidden/);
    }
    expect(summarize({ runnerToken: 'hidden' })).toMatch(/runners on other machines/);
    expect(summarize({ runnerToken: 'hidden' })).not.toContain('hidden');
  });
});

describe('a secret', () => {
  it('is found whole, and not by a part of it', () => {
    const secrets = [...token('olga=long-secret'), ...token('bob=other')];
    expect(findSecret(secrets, 'other')?.name).toBe('bob');
    for (const given of ['', 'long', 'long-secret2', 'olga=long-secret']) {
      expect(findSecret(secrets, given)).toBeUndefined();
    }
    expect(findSecret([], '')).toBeUndefined();
  });
});

describe('the log', () => {
  const write = (level: Parameters<typeof createLog>[0]) => {
    const lines: string[] = [];
    const log = createLog(
      level,
      (line) => lines.push(line),
      () => new Date(0),
    );
    log.info('turn began', { sessionId: 's 1' });
    log.warn('slow', { ms: 5 });
    const error = Object.assign(new TypeError('no'), { requestBody: 'what was asked' });
    error.stack = `${error}\n    at here`;
    log.error('failed', { error });
    return lines;
  };

  it('writes lines from its level up', () => {
    expect(write('info')).toEqual([
      '1970-01-01T00:00:00.000Z info turn began sessionId="s 1"',
      '1970-01-01T00:00:00.000Z warn slow ms=5',
      '1970-01-01T00:00:00.000Z error failed error={"name":"TypeError","stack":"    at here"}',
    ]);
    expect(write('warn')).toHaveLength(2);
    expect(write('error')).toHaveLength(1);
  });

  it('is one object a line for machines', () => {
    const time = '1970-01-01T00:00:00.000Z';
    expect(write('json').map((line) => JSON.parse(line))).toEqual([
      { time, level: 'info', message: 'turn began', sessionId: 's 1' },
      { time, level: 'warn', message: 'slow', ms: 5 },
      {
        time,
        level: 'error',
        message: 'failed',
        error: { name: 'TypeError', stack: '    at here' },
      },
    ]);
  });
});
