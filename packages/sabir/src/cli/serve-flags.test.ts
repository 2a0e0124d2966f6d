import { describe, expect, it } from 'vitest';
import { toMainHelp, toServeHelp } from './help.ts';
import { readServeOptions, SERVE_FLAGS, type ServeOptions } from './serve-flags.ts';

function read(args: string, environment: Record<string, string> = {}): ServeOptions {
  const words = args.split(' ').filter(Boolean);
  const options = readServeOptions(words, { environment, cwd: '/home/olga' });
  if (options === 'help') throw new Error('It wants to help.');
  return options;
}

const LONG = 'a'.repeat(32);

describe('the options of sabir serve', () => {
  it('have defaults for a first look: this machine only, and no model', () => {
    expect(read('')).toEqual({
      port: 3000,
      host: '127.0.0.1',
      page: 'chat',
      cors: [],
      agent: 'scripted',
      model: undefined,
      directory: '/home/olga',
      database: '/home/olga/sabir.db',
      secrets: [],
      jwtSecret: undefined,
      runnerToken: undefined,
      isOpen: true,
      isOpenToAll: false,
      shutdownMs: 10_000,
      log: 'warn',
      warnings: [],
    });
  });

  it('are read from flags', () => {
    const args =
      '-p 0 --host ::1 --database :memory: --agent ./my-agent.ts --directory work --shutdown 0.5 ' +
      '--log json --cors https://a.example/ --cors http://localhost:5173 --page public';
    expect(read(args)).toMatchObject({
      port: 0,
      host: '::1',
      database: ':memory:',
      agent: './my-agent.ts',
      shutdownMs: 500,
      directory: '/home/olga/work',
      log: 'json',
      page: { folder: '/home/olga/public' },
      cors: ['https://a.example', 'http://localhost:5173'],
    });
    expect(read('--no-page', { SABIR_PAGE: 'public' }).page).toBe('none');
  });

  it('are read from the environment', () => {
    const environment = {
      PORT: '8080',
      HOST: 'localhost',
      SABIR_MODEL: 'openai/gpt-5',
      SABIR_AGENT: 'ai-sdk',
      SABIR_TOKEN: 'olga=secret-1,secret-2',
      SABIR_JWT_SECRET: LONG,
      SABIR_LOG: 'error',
    };
    expect(read('', environment)).toMatchObject({
      port: 8080,
      host: 'localhost',
      model: 'openai/gpt-5',
      agent: 'ai-sdk',
      log: 'error',
      jwtSecret: LONG,
      isOpen: false,
      warnings: [],
      secrets: [
        { name: 'olga', secret: 'secret-1', role: 'owner', isFromEnvironment: true },
        { name: 'owner-2', secret: 'secret-2', role: 'owner', isFromEnvironment: true },
      ],
    });
  });

  it('tell a name from the end of a secret', () => {
    const args = '--token c2VjcmV0== --token olga=c2VjcmV0== --viewer-token plain';
    expect(read(args).secrets.map(({ name, secret, role }) => [name, secret, role])).toEqual([
      ['owner', 'c2VjcmV0==', 'owner'],
      ['olga', 'c2VjcmV0==', 'owner'],
      ['viewer', 'plain', 'viewer'],
    ]);
  });

  it.each([
    ['--port eighty', '--port must be a whole number from 0 to 65535, not “eighty”.'],
    ['--port 65536', 'from 0 to 65535'],
    ['--port 80.5', 'a whole number'],
    ['--shutdown -1', '--shutdown needs a value'],
    ['--shutdown=soon', '--shutdown must be a number from 0 to 3600, not “soon”.'],
    ['--log inof', 'must be one of info, warn, error, json, not “inof”. Did you mean info?'],
    ['--agent opencod', 'There is no agent “opencod”. Did you mean opencode?'],
    ['--cors example.com', '--cors must be an origin, such as https://app.example.com'],
    ['--cors https://a.example/chat', 'such as https://a.example, not'],
    ['--jwt-secret short', 'too short'],
    ['--token zażółć', 'must be a secret of letters, digits and signs'],
    ['--page a --no-page', 'contradict each other'],
    ['--open --token secret', 'Leave one out'],
    ['--cors *', 'lets every web page you visit use the agent'],
    ['--host 0.0.0.0', 'On 0.0.0.0 others can reach this server'],
    ['--host ::', 'SABIR_TOKEN'],
    ['--host 192.168.1.4', '--open'],
  ])('say what would be right in place of %s', (args, sentence) => {
    expect(() => read(args)).toThrow(sentence);
    expect(() => read(args)).toThrow(expect.objectContaining({ exitCode: 2 }));
  });

  it('name the variable where that is wrong', () => {
    expect(() => read('', { PORT: 'x' })).toThrow('PORT must be a whole number');
  });

  it('let others in with a token, with a JWT, or if that is what is wanted', () => {
    expect(read('--host 0.0.0.0 --token a-long-enough-secret').warnings).toEqual([]);
    expect(read('--host 0.0.0.0', { SABIR_JWT_SECRET: LONG }).isOpen).toBe(false);
    expect(read('--host 0.0.0.0 --open')).toMatchObject({ isOpen: true, isOpenToAll: true });
    expect(read('--cors * --token secret').cors).toBe('*');
  });

  it('warn of what is unwise', () => {
    expect(read(`--jwt-secret ${LONG}`).warnings).toEqual([
      expect.stringContaining('Set SABIR_JWT_SECRET instead'),
    ]);
    expect(read('--host 0.0.0.0 --token short').warnings).toHaveLength(1);
    expect(read('--model openai/gpt-5').warnings).toHaveLength(1);
  });
});

describe('the help', () => {
  it('names every flag, every variable and fits into a terminal', () => {
    const help = toServeHelp();
    const lines = help.split('\n');
    for (const [name, flag] of Object.entries(SERVE_FLAGS)) {
      const line = lines.find((text) => text.startsWith(`  --${name}`)) ?? '';
      expect(line, name).toContain(flag.about);
      for (const variable of 'env' in flag ? flag.env : []) expect(line).toContain(variable);
    }
    expect(lines.length).toBeLessThanOrEqual(45);
    for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(100);
  });

  it('keeps what a flag does apart from its variable', () => {
    for (const line of toServeHelp().split('\n')) expect(line).not.toMatch(/\w\)?SABIR_/);
  });

  it('is wanted with --help, whatever else is said', () => {
    const surroundings = { environment: {}, cwd: '/' };
    expect(readServeOptions(['--help', '--host', '0.0.0.0'], surroundings)).toBe('help');
  });

  it('names the commands', () => {
    expect(toMainHelp('1.2.3')).toMatch(/^sabir 1\.2\.3/);
    expect(toMainHelp('1.2.3')).toMatch(/^ {2}serve /m);
  });
});
