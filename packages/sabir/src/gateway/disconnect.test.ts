import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  eventually,
  isSettled,
  openSse,
} from '../../test/gateway-client.ts';
import { serve } from '../platforms/node/serve.ts';

const DETACH = { headers: { 'x-sabir-detach': '1' } };

async function startTurn(disconnectGraceMs: number, init = {}) {
  const agent = createAgent();
  const gateway = createTestGateway(agent.upstream, { timing: { disconnectGraceMs } });
  const carl = createUser(gateway, 'carl');
  const vera = createUser(gateway, 'vera');
  const first = openSse(await carl.post(chatBody('hi'), init));
  const run = await agent.run();
  run.delta('a');
  await first.until(() => first.text());
  return { agent, gateway, carl, vera, first, run, stopped: () => run.turn.signal.aborted };
}

/** Long enough for a grace time of 20 ms to have run out. */
const aWhile = () => new Promise((resolve) => setTimeout(resolve, 80));

describe('when the last viewer leaves', () => {
  it('the turn is stopped after the grace time, and not before [RFC-ERR-05] [RFC-INT-2.1] [RFC-INT-2.2] [RFC-STATE-04]', async () => {
    const { carl, first, stopped } = await startTurn(100);
    const leftAt = performance.now();
    await first.leave();
    await eventually(stopped);
    expect(performance.now() - leftAt).toBeGreaterThanOrEqual(95);
    await expect.poll(async () => (await carl.resume()).status, { interval: 2 }).toBe(204);
    expect(await carl.metrics()).toMatchObject({ 'sabir_turns_total{outcome="stopped"}': 1 });
  });

  it('the turn is stopped at once where there is no grace', async () => {
    const { first, stopped } = await startTurn(0);
    await first.leave();
    expect(stopped() || (await isSettled(eventually(stopped)))).toBe(true);
  });

  it('says in the metadata why it was stopped', async () => {
    const { carl, first, stopped } = await startTurn(0);
    const { id } = first.frames.at(-1) ?? {};
    await first.leave();
    await eventually(stopped);
    const rest = openSse(await carl.resumeAt(id as string));
    await rest.ended;
    expect(rest.chunks().at(-1)).toMatchObject({
      messageMetadata: { outcome: 'stopped', reason: 'the last viewer left' },
    });
  });

  it('the turn goes on if somebody comes back in time, and is stopped when they leave too', async () => {
    const { carl, first, run, stopped } = await startTurn(20);
    await first.leave();
    const second = openSse(await carl.resume());
    await aWhile();
    expect(stopped()).toBe(false);
    run.delta('b');
    await second.until(() => second.text() === 'ab');
    await second.leave();
    await eventually(stopped);
  });

  it('the turn goes on while anybody is left', async () => {
    const { carl, first, stopped } = await startTurn(0);
    const second = openSse(await carl.resume());
    await first.leave();
    await aWhile();
    expect(stopped()).toBe(false);
    await second.leave();
    await eventually(stopped);
  });

  it('the turn goes on for ever if they promised to stop it themselves', async () => {
    const { carl, first, run, stopped } = await startTurn(0, DETACH);
    await first.leave();
    await aWhile();
    expect(stopped()).toBe(false);
    run.end();
    const rest = openSse(await carl.resumeAt(first.frames.at(-1)?.id as string));
    await rest.ended;
    expect(rest.chunks().at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' });
  });

  it('the turn is never stopped by the leaving of somebody who only watches', async () => {
    const { carl, vera, first, stopped } = await startTurn(0, DETACH);
    await first.leave();
    const watching = openSse(await vera.resume());
    await watching.until(() => watching.text());
    await watching.leave();
    await aWhile();
    expect(stopped()).toBe(false);
    expect((await carl.stop()).status).toBe(202);
  });

  it('somebody who only watches keeps it going for as long as they watch', async () => {
    const { vera, first, stopped } = await startTurn(20);
    const watching = openSse(await vera.resume());
    await first.leave();
    await aWhile();
    expect(stopped()).toBe(false);
    await watching.leave();
    await eventually(stopped);
  });

  it('a request that is aborted has left, where nobody cancels its body', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, { timing: { disconnectGraceMs: 0 } });
    const leaving = new AbortController();
    const { signal } = leaving;
    const response = await createUser(gateway, 'carl').post(chatBody('hi'), { signal });
    const { turn } = await agent.run();
    leaving.abort();
    await eventually(() => turn.signal.aborted);
    await response.text();
    expect(await createUser(gateway, 'carl').metrics()).toMatchObject({ sabir_viewers: 0 });
  });

  it('a client whose socket breaks has left', async () => {
    const agent = createAgent();
    const gateway = createTestGateway(agent.upstream, { timing: { disconnectGraceMs: 0 } });
    const { port, close } = await serve({ fetch: gateway.fetch, shutdownMs: 0 });
    onTestFinished(close);
    const body = JSON.stringify(chatBody('hi'));
    const socket = connect(port, '127.0.0.1');
    let heard = '';
    socket.on('data', (bytes) => {
      heard += bytes;
    });
    socket.write(
      `POST /api/sessions/s1/chat HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer carl\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    const run = await agent.run();
    run.delta('one');
    await eventually(
      () => heard.includes('"delta":"one"'),
      'bytes',
      () => heard,
    );
    socket.destroy();
    await eventually(() => run.turn.signal.aborted);
  });
});
