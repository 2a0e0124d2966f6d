/** One of the gateways, to be killed, suspended and started again. Tells its parent what it stored. */
import { WebSocket } from 'ws';
import type { Logger } from '../../src/core/translator.ts';
import { createChatGateway, memoryTurnLog } from '../../src/gateway/index.ts';
import { serve } from '../../src/platforms/node/serve.ts';
import { sessionServerUpstream } from '../../src/sessions/index.ts';
import type { TurnLog } from '../../src/turns/log.ts';
import { gatewayToken } from '../link-rig.ts';
import { answerForLog, reportFailures, tellParent } from './child.ts';

export type GatewayProcessOptions = {
  /** 0 for any that is free. */
  port: number;
  upstreamUrl: string;
  /** Without it turns are kept in this process. */
  redisUrl?: string;
  client: 'redis' | 'ioredis';
  leaseMs: number;
  retentionMs: number;
  disconnectGraceMs: number;
};

reportFailures();
const options: GatewayProcessOptions = JSON.parse(process.argv[2] ?? '{}');

function reasonOf(error: unknown): string {
  if (error instanceof Error) return error.message;
  const { name, code } = (error ?? {}) as { name?: string; code?: string };
  return [name, code].filter(Boolean).join(' ');
}

const note = (level: string) => (text: string, details?: object) => {
  const { turnId, error } = (details ?? {}) as { turnId?: string; error?: unknown };
  const why = error === undefined ? '' : `: ${reasonOf(error)}`;
  tellParent({ type: 'log', level, text: `${text}${why}`, ...(turnId && { turnId }) });
};
const logger: Logger = { info: note('info'), warn: note('warn'), error: note('error') };

async function openLog(): Promise<TurnLog> {
  const { redisUrl, leaseMs, retentionMs } = options;
  if (!redisUrl) return memoryTurnLog({ retentionMs });
  const { openRedisLog } = await import('./redis-log.ts');
  return openRedisLog({ redisUrl, leaseMs, retentionMs, client: options.client, logger });
}

const log = await openLog();
answerForLog(log);
const gateway = createChatGateway({
  log,
  upstream: sessionServerUpstream({
    url: options.upstreamUrl,
    WebSocket,
    token: gatewayToken,
    openMs: 5_000,
    pingMs: 5_000,
  }),
  authenticate: () => ({ id: 'ann' }),
  access: () => 'owner',
  onFinish: ({ sessionId, turnId, outcome, message }) =>
    tellParent({ type: 'finish', sessionId, turnId, outcome, message }),
  timing: {
    keepAliveMs: 1_000,
    lingerMs: 2_000,
    disconnectGraceMs: options.disconnectGraceMs,
    idleMs: 30_000,
    connectMs: 10_000,
  },
  logger,
});
const server = await serve({ fetch: gateway.fetch, port: options.port });
tellParent({ type: 'ready', port: server.port });
