import { fileURLToPath } from 'node:url';
import { DefaultChatTransport } from 'ai';
import { SabirChatTransport } from 'sabir/client';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createClient } from '../packages/sabir/test/real-clients.ts';
import { hasServers, runCompose } from './test/run-compose.ts';

const FOLDER = fileURLToPath(new URL('several-gateways', import.meta.url));
const GATEWAYS = ['gateway-1', 'gateway-2', 'gateway-3'];
const WHY = hasServers ? '' : ' (skipped: it needs redis-server and nginx)';

type Compose = Awaited<ReturnType<typeof runCompose>>;

const rowing = (to: string) =>
  Array.from({ length: 60 }, (_, at) => `${at + 1}. stroke towards ${to}. `).join('');

function textOf(message?: { parts: { type: string; text?: string }[] }): string {
  return (message?.parts ?? []).map(({ type, text }) => (type === 'text' ? text : '')).join('');
}

describe.skipIf(!hasServers)(
  `three gateways behind nginx, as the compose file has them${WHY}`,
  () => {
    let compose: Compose;
    beforeAll(async () => {
      compose = await runCompose(FOLDER, {
        SESSIONS_SECRET: 'a-secret-of-their-own',
        LEASE_MS: '2000',
        STROKE_MS: '50',
      });
    }, 60_000);
    afterAll(() => compose?.stop());

    const apiOf = (session: string) =>
      `http://127.0.0.1:${compose.service('nginx').port}/api/sessions/${session}/chat`;

    /** The gateway that runs it, of those that say how many turns they run. */
    async function runnerOf(): Promise<string> {
      for (const name of GATEWAYS) {
        const { port } = compose.service(name);
        const text = await fetch(`http://127.0.0.1:${port}/metrics`).then((page) => page.text());
        if (/^sabir_live_turns [1-9]/m.test(text)) return name;
      }
      throw new Error('no gateway runs a turn');
    }

    async function send(session: string, text: string) {
      const transport = new SabirChatTransport({ api: apiOf(session) });
      const client = await createClient('ai@7', transport, { id: 'c' });
      const sent = client.chat.sendMessage({ text });
      await vi.waitUntil(() => textOf(client.result().message).includes('10. stroke'), 20_000);
      return { ...client, sent };
    }

    it('streams through it as it comes, from any of them [GWS-09]', async () => {
      const { chat, result } = await createClient(
        'ai@7',
        new DefaultChatTransport({ api: apiOf('quay') }),
        { id: 'c' },
      );
      const lengths = new Set<number>();
      const sent = chat.sendMessage({ text: 'Gozo' });
      const looking = setInterval(() => lengths.add(textOf(result().message).length), 20);
      await sent;
      clearInterval(looking);
      expect(textOf(result().message)).toBe(rowing('Gozo'));
      expect(lengths.size).toBeGreaterThan(20);
    }, 30_000);

    it('loses nothing when the gateway that runs a turn is killed', async () => {
      const { sent, result } = await send('killed', 'Malta');
      const runner = await runnerOf();
      await compose.service(runner).end('SIGKILL');
      await sent;
      expect(result().error).toBeUndefined();
      expect(textOf(result().message)).toBe(rowing('Malta'));
      await compose.start(runner);
    }, 60_000);

    it('loses nothing when each gateway is replaced, one after the other', async () => {
      const { sent, result } = await send('replaced', 'Sicily');
      for (const name of GATEWAYS) {
        await compose.service(name).end('SIGTERM');
        await compose.start(name);
      }
      await sent;
      expect(result().error).toBeUndefined();
      expect(textOf(result().message)).toBe(rowing('Sicily'));
    }, 60_000);

    it('stops a turn from wherever it is asked to', async () => {
      const { sent, result } = await send('stopped', 'Crete');
      const stopped = await fetch(`${apiOf('stopped')}/c/stop`, { method: 'POST' });
      expect(stopped.status).toBe(202);
      await sent;
      expect(rowing('Crete').startsWith(textOf(result().message))).toBe(true);
      expect(result().message?.metadata).toMatchObject({ outcome: 'stopped' });
    }, 30_000);

    it('says what is wrong while Redis is away, and serves everybody when it is back', async () => {
      await compose.service('redis').end('SIGKILL');
      const ask = async (session: string) => {
        const response = await fetch(apiOf(session), {
          method: 'POST',
          body: JSON.stringify({ id: 'c', messages: [{ role: 'user', content: 'Naxos' }] }),
        });
        const { status } = response;
        if (status === 200) await response.body?.cancel();
        return { status, code: status === 200 ? '' : (await response.json()).code };
      };
      const begun = Date.now();
      const asked = await Promise.all(Array.from({ length: 9 }, (_, at) => ask(`away-${at}`)));
      // Each was asked of one gateway, which waited for three seconds.
      expect(Date.now() - begun).toBeLessThan(6_000);
      for (const one of asked) expect(one).toEqual({ status: 503, code: 'log-unavailable' });
      const health = `http://127.0.0.1:${compose.service('nginx').port}/healthz`;
      expect((await fetch(health)).status).toBe(200);
      await compose.start('redis');
      await vi.waitUntil(async () => (await ask('back')).status === 200, 20_000);
    }, 60_000);

    it('asks again where a gateway is gone before it could answer', async () => {
      await compose.service('gateway-2').end('SIGKILL');
      const asked = await Promise.all(
        ['a', 'b', 'c', 'd'].map(async (session) => {
          const response = await fetch(apiOf(`gone-${session}`), {
            method: 'POST',
            body: JSON.stringify({ id: 'c', messages: [{ role: 'user', content: session }] }),
          });
          await response.body?.cancel();
          return response.status;
        }),
      );
      expect(asked).toEqual([200, 200, 200, 200]);
      await compose.start('gateway-2');
    }, 30_000);
  },
);
