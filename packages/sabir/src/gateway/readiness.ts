import { LOG_UNAVAILABLE } from '../core/errors.ts';
import type { MetricRegistry } from '../core/metrics.ts';
import type { Logger } from '../core/translator.ts';
import { within } from '../core/within.ts';
import { withoutContent } from '../core/without-content.ts';
import type { TurnLog } from '../turns/log.ts';
import { json } from './responses.ts';

type ReadinessOptions = {
  log: TurnLog;
  registry: MetricRegistry;
  ready: (() => Promise<readonly string[]> | readonly string[]) | undefined;
  isClosing(): boolean;
  logger: Logger | undefined;
};

/** Load balancers give up after about a second, and many of them ask at once. */
const CHECK_MS = 1_000;
const CHECK_FAILED = 'check-failed';

/**
 * `GET /readyz`: whether this process should get more requests, and if not, why not. Everybody may
 * ask, so the store is asked at most once a second, and nothing but codes is shown.
 */
export function createReadiness(options: ReadinessOptions): () => Promise<Response> {
  const { log, registry, logger } = options;
  let asked: { at: number; problems: Promise<string[]> } | undefined;

  async function check(
    name: string,
    run: () => Promise<readonly string[]>,
    problem: string,
  ): Promise<readonly string[]> {
    try {
      return await within(CHECK_MS, run(), () => [problem]);
    } catch (error) {
      logger?.warn('a readiness check failed', { check: name, error: withoutContent(error) });
      return [problem];
    }
  }

  /** Any read will do: it finds nothing, and tells whether the log can be reached. */
  async function askLog(): Promise<string[]> {
    await log.latest('sabir-readyz', 'sabir-readyz');
    return [];
  }

  async function ask(): Promise<string[]> {
    const problems = await Promise.all([
      check('log', askLog, LOG_UNAVAILABLE.code),
      check('ready', async () => (await options.ready?.()) ?? [], CHECK_FAILED),
    ]);
    return problems.flat();
  }

  return async () => {
    const now = performance.now();
    if (!asked || now - asked.at >= CHECK_MS) asked = { at: now, problems: ask() };
    const reasons = [
      ...(options.isClosing() ? ['closing'] : []),
      ...registry.reachedLimits().map((limit) => `limit-reached: ${limit}`),
      ...(await asked.problems),
    ];
    if (reasons.length === 0) return json(200, { status: 'ready' });
    return json(503, { status: 'not-ready', reasons: [...new Set(reasons)] });
  };
}
