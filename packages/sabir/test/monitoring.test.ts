/** The alert rules and the dashboard in `deploy/`, against what real runs give at `/metrics`. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createMetricRegistry } from '../src/core/metrics.ts';
import { asUpstream, createChatGateway, type Upstream } from '../src/gateway/index.ts';
import { watchProcess } from '../src/platforms/node/serve.ts';
import { createSessionServer } from '../src/platforms/node/session-server.ts';
import { memorySessionStore } from '../src/sessions/index.ts';
import { createChunkTranslator } from '../src/sources/ai-sdk/translate.ts';
import { chatBody, createUser } from './gateway-client.ts';
import { parseMetrics } from './parse-metrics.ts';

const deployed = (file: string) =>
  fileURLToPath(new URL(`../../../deploy/${file}`, import.meta.url));
const RULES = deployed('prometheus/sabir.rules.yml');
const rules = readFileSync(RULES, 'utf8');
const ALERTS = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => name as string);
const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
const IF_PROMTOOL = hasPromtool ? '' : ' (left out: there is no promtool)';

type Scrape = { samples: Record<string, number>; types: Record<string, string> };
type Session = 'well' | 'failing' | 'odd' | 'slow' | 'lost' | 'away';

const text = { type: 'text-start', id: '1' } as const;
const UPSTREAMS: Record<Session, Upstream> = {
  well: asUpstream(async function* () {
    yield text;
  }),
  failing: asUpstream(() => Promise.reject(new Error('no'))),
  odd: asUpstream(async function* () {
    yield { type: 'telepathy' } as never;
    yield { type: 'text-delta', id: 't', delta: 7 } as never;
  }),
  slow: asUpstream(async function* () {
    await new Promise((resolve) => setTimeout(resolve, 600));
    yield text;
  }),
  lost: {
    open: async () => ({
      isClosed: false,
      prompt({ messageId }, sink) {
        queueMicrotask(() => sink.close({ status: 'lost' }));
        const turn = { isQueued: false, stop: () => undefined, answer: () => undefined };
        return {
          ...turn,
          translator: createChunkTranslator({ messageId }),
          release: () => undefined,
        };
      },
      close: () => undefined,
    }),
  },
  away: { open: () => Promise.reject(new Error('away')) },
};

/** A gateway and a session server that share their metrics, and what can go wrong with them. */
function createWorld() {
  const metrics = createMetricRegistry();
  const room = { use: 1 };
  const store = memorySessionStore();
  const access = (_: unknown, sessionId: string) => (sessionId === 'forbidden' ? null : 'owner');
  const options = { authenticate: () => ({ id: 'carl' }), access } as const;
  const gateway = createChatGateway({
    ...options,
    metrics,
    upstream: (sessionId) => UPSTREAMS[sessionId as Session],
    enabled: (_, sessionId) => sessionId !== 'hung' || new Promise<never>(() => undefined),
    timing: { hookMs: 10 },
  });
  const unfinished = () => {
    throw new Error('The disk is full.');
  };
  const sessions = createSessionServer({ ...options, store: { ...store, unfinished }, metrics });
  const refuse = metrics.limit('rooms', { max: 10, use: () => room.use });
  const stop = watchProcess(metrics);
  onTestFinished(async () => {
    stop();
    await gateway.close();
    await sessions.close(0);
  });
  const carl = createUser(gateway, 'carl');
  const ask = async (session: Session | 'hung' | 'forbidden') => {
    const init = {
      method: 'POST',
      body: JSON.stringify(chatBody('hi', { id: `${Math.random()}` })),
    };
    const url = `http://gateway.test/api/sessions/${session}/chat`;
    await (await gateway.fetch(new Request(url, init))).text();
  };
  return {
    ask,
    refuse,
    room,
    async scrape(): Promise<Scrape> {
      const page = await (await carl.send('GET', '/metrics')).text();
      const types = [...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [
        name,
        type,
      ]);
      return { samples: parseMetrics(page), types: Object.fromEntries(types) };
    },
    failToStore() {
      expect(() => sessions.recover()).toThrow();
    },
  };
}

const TROUBLES = ['failing', 'lost', 'away'] as const;

/** A minute in which all is well, and what one scrape before and one after it gave. */
async function healthyMinute() {
  const world = createWorld();
  for (const session of ['well', ...TROUBLES] as const) await world.ask(session);
  const before = await world.scrape();
  for (let i = 0; i < 20; i++) await world.ask('well');
  // What strangers get wrong is no trouble of ours.
  for (let i = 0; i < 20; i++) await world.ask('forbidden');
  await expect.poll(async () => lagOf(await world.scrape()), { timeout: 10_000 }).toBeLessThan(0.1);
  return { before, after: await world.scrape() };
}

/** The same for one in which everything goes wrong: each figure is past its threshold. */
async function brokenMinute() {
  const world = createWorld();
  for (const session of ['well', ...TROUBLES] as const) await world.ask(session);
  const before = await world.scrape();
  for (let i = 0; i < 10; i++) await world.ask('well');
  for (const session of [...TROUBLES, 'odd', 'slow', 'hung'] as const) await world.ask(session);
  world.failToStore();
  world.refuse();
  world.room.use = 9;
  for (let i = 0; i < 3; i++) {
    const end = performance.now() + 200;
    while (performance.now() < end);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { before, after: await world.scrape() };
}

const lagOf = ({ samples }: Scrape) =>
  samples['sabir_event_loop_lag_seconds{quantile="0.99"}'] ?? Number.NaN;

const familyOf = (name: string, types: Scrape['types']) =>
  types[name] ? name : name.replace(/_(bucket|sum|count)$/, '');

/** As if every minute were like this one. What was not there before it came once, and stayed. */
function toSeries({ before, after }: { before: Scrape; after: Scrape }) {
  return Object.entries(after.samples).map(([sample, value]) => {
    const [, name = '', labels] = /^([^{]+)(?:\{(.*)\})?$/.exec(sample) ?? [];
    const series = `${name}{${labels ? `${labels},` : ''}job="sabir",instance="one"}`;
    const was = before.samples[sample];
    if (after.types[familyOf(name, after.types)] === 'gauge')
      return { series, values: `${value}x30` };
    if (was === undefined) return { series, values: `_x5 ${value}x25` };
    return { series, values: `${was}+${value - was}x30` };
  });
}

/** Runs our rules over these series with Prometheus' own tool; the alerts that fire must be these. */
function testRules(minute: Parameters<typeof toSeries>[0], firing: string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'sabir-rules-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const query = {
    expr: 'group by (alertname) (ALERTS{alertstate="firing"})',
    eval_time: '15m',
    exp_samples: firing.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 })),
  };
  const test = { interval: '1m', input_series: toSeries(minute), promql_expr_test: [query] };
  const file = join(folder, 'test.yml');
  const all = { rule_files: [RULES], evaluation_interval: '1m', tests: [test] };
  writeFileSync(file, JSON.stringify(all));
  const { stdout, stderr, status } = spawnSync('promtool', ['test', 'rules', file]);
  return status === 0 ? '' : `${stdout}${stderr}`;
}

type Selector = { name: string; labels: string[] };

/** Every metric that an expression names, with the labels that it asks for. */
function selectorsIn(expression: string): Selector[] {
  return [...expression.matchAll(/\b((?:adapter|sabir|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, name = '', matchers = '']) => ({
      name,
      labels: [...matchers.matchAll(/(\w+)\s*[=!]~?/g)].map(([, label]) => label as string),
    }),
  );
}

describe('the alert rules and the dashboard', () => {
  const dashboard = JSON.parse(readFileSync(deployed('grafana/sabir.json'), 'utf8'));
  type Panel = { targets?: { expr: string; legendFormat: string }[] };
  const targets = (dashboard.panels as Panel[]).flatMap((panel) => panel.targets ?? []);

  let minute: ReturnType<typeof brokenMinute> | undefined;
  const broken = () => {
    minute ??= brokenMinute();
    return minute;
  };

  it('name only metrics and labels that a scrape gives', async () => {
    const { after } = await broken();
    const labels = new Map<string, Set<string>>();
    for (const sample of Object.keys(after.samples)) {
      const [, name = '', text = ''] = /^([^{]+)(?:\{(.*)\})?$/.exec(sample) ?? [];
      const known = labels.get(name) ?? new Set(['job', 'instance']);
      for (const [, label = ''] of text.matchAll(/(\w+)="/g)) known.add(label);
      labels.set(name, known);
    }
    const used = [rules.replace(/#.*$/gm, ''), ...targets.map(({ expr }) => expr)];
    for (const { name, labels: asked } of used.flatMap(selectorsIn)) {
      expect([...labels.keys()]).toContain(name);
      for (const label of asked) expect([name, ...(labels.get(name) ?? [])]).toContain(label);
    }
    for (const { expr, legendFormat } of targets) {
      const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(
        ([, label]) => label as string,
      );
      const [{ name = '' } = {}] = selectorsIn(expr);
      for (const label of shown) expect([name, ...(labels.get(name) ?? [])]).toContain(label);
    }
  });

  it.skipIf(!hasPromtool)(`are silent while all is well${IF_PROMTOOL}`, async () => {
    expect(testRules(await healthyMinute(), [])).toBe('');
  });

  it.skipIf(!hasPromtool)(
    `fire, each of them, when everything goes wrong${IF_PROMTOOL}`,
    async () => {
      expect(testRules(await broken(), ALERTS)).toBe('');
    },
  );
});
