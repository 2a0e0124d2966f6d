import { describe, expect, it } from 'vitest';
import { type FlagTable, readFlags } from './flags.ts';
import { findNearest } from './suggest.ts';

const TABLE = {
  port: { kind: 'text', short: 'p', env: ['SABIR_PORT', 'PORT'], example: '3000', about: '' },
  token: { kind: 'list', env: ['SABIR_TOKEN'], about: '' },
  open: { kind: 'switch', about: '' },
} as const satisfies FlagTable;

const read = (args: string[], environment: Record<string, string> = {}) =>
  readFlags(TABLE, args, environment);

describe('flags', () => {
  it('are read in every way they are written', () => {
    for (const args of [['--port', '1'], ['--port=1'], ['-p', '1'], ['-p1']]) {
      expect(read(args).port, args.join(' ')).toMatchObject({ values: ['1'], source: '--port' });
    }
    expect(read(['--token', 'a=b', '--token=c']).token?.values).toEqual(['a=b', 'c']);
    expect(read(['--open']).open).toBeDefined();
    expect(read([])).toEqual({});
  });

  it('may begin with a dash where they are tied to their name', () => {
    expect(read(['--token=-secret']).token?.values).toEqual(['-secret']);
  });

  it('win over the environment, where the first variable wins over the others', () => {
    const environment = { PORT: '1', SABIR_PORT: '2' };
    expect(read([], environment).port).toEqual({
      values: ['2'],
      source: 'SABIR_PORT',
      isFromEnvironment: true,
    });
    expect(read([], { PORT: '1' }).port?.source).toBe('PORT');
    expect(read(['--port', '3'], environment).port?.values).toEqual(['3']);
  });

  it('take a list from one variable, and nothing from an empty one', () => {
    expect(read([], { SABIR_TOKEN: 'a=1, b=2\nc' }).token?.values).toEqual(['a=1', 'b=2', 'c']);
    expect(read([], { SABIR_TOKEN: '', SABIR_PORT: '', PORT: '5' })).toMatchObject({
      port: { source: 'PORT' },
    });
    expect(read([], { SABIR_TOKEN: '' }).token).toBeUndefined();
  });

  it.each([
    [['--prot', '1'], 'Unknown flag --prot. Did you mean --port?'],
    [['--tokens=1'], 'Unknown flag --tokens. Did you mean --token?'],
    [['--banana'], 'Unknown flag --banana.'],
    [['-x'], 'Unknown flag -x.'],
    [['--constructor'], 'Unknown flag --constructor.'],
    [['--port'], '--port needs a value, for example --port 3000'],
    [['--port', '--open'], '--port needs a value, for example --port 3000'],
    [['--token='], '--token needs a value'],
    [['--open=yes'], '--open takes no value.'],
    [['here'], '“here” is not a flag'],
  ])('say what is wrong with %j', (args, sentence) => {
    expect(() => read(args)).toThrow(sentence);
    expect(() => read(args)).toThrow(expect.objectContaining({ exitCode: 2 }));
  });
});

describe('the nearest word', () => {
  const words = ['--port', '--host', '--token', '--viewer-token', '--jwt-secret'];

  it.each([
    ['--prot', '--port'],
    ['--hots', '--host'],
    ['--Token', '--token'],
    ['--viewertoken', '--viewer-token'],
    ['--jwt', '--jwt-secret'],
  ])('of %s is %s', (typed, nearest) => {
    expect(findNearest(typed, words)).toBe(nearest);
  });

  it('is none where nothing is near', () => {
    expect(findNearest('--banana', words)).toBeUndefined();
    expect(findNearest('x', ['serve', 'help'])).toBeUndefined();
    expect(findNearest('', words)).toBeUndefined();
  });
});
