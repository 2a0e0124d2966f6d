/** Attacks by a runner that was admitted, with the frames of its turns: sizes, turn ids, numbers, hellos. */
import { describe, expect, it } from 'vitest';
import { connectRunner, startHostileTurn } from '../hostile-runner.ts';
import { joinSession } from '../session-chain.ts';

const text = (delta: string) => ({ type: 'text-delta', id: 'text', delta });
const question = (questionId: string, more: object = {}) => ({
  type: 'data-question',
  id: questionId,
  data: { questionId, text: 'Refund?', ...more },
});

describe('a runner', () => {
  it('that updates 400 tools of a 2 MB answer at once makes the server copy the answer a few times, not 400', async () => {
    const { chain, ann, say, finish } = await startHostileTurn();
    // Old clients get the whole message at each change.
    const vera = await joinSession(chain, { user: 'vera' });
    let received = 0;
    vera.onEvent = ({ type, data }) => {
      if (type === 'message.updated') received += (data as { content: string }).content.length;
    };
    say(text('x'.repeat(2_000_000)));
    for (let n = 0; n < 400; n++) {
      say({ type: 'tool-input-available', toolCallId: `c${n}`, toolName: 'x', input: {} });
    }
    await finish();
    const last = await vera.until(
      ({ type, data }) =>
        type === 'message.updated' && JSON.stringify(data).includes('"reason":"end_turn"'),
    );
    expect((last.data as { parts: object[] }).parts).toHaveLength(402);
    const calls = new Set(ann.of('message.part.tool-update').map(({ callId }) => callId));
    expect(calls.size).toBe(400);
    expect(received).toBeLessThan(100_000_000);
  });

  it('that asks more questions than a turn may have ends its own turn, and the event loop stays free', async () => {
    const { chain, ann, say, turnId = '' } = await startHostileTurn();
    const began = performance.now();
    for (let n = 0; n < 1_100; n++) say(question(`q${n}`));
    expect(await ann.until(({ type }) => type === 'message.finalize')).toMatchObject({
      code: 'turn-too-large',
    });
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(ann.of('question').length).toBeLessThanOrEqual(1_001);
    expect(await chain.store.log.get(turnId)).toMatchObject({ outcome: { status: 'failed' } });
    ann.send({ type: 'answer', questionId: 'q1', answer: 'yes' });
    expect(await ann.until(({ type }) => type === 'error')).toMatchObject({
      code: 'question-expired',
    });
  });

  it('that writes nothing but what may close a turn is held to turnBytes too', async () => {
    const { ann, say } = await startHostileTurn({ limits: { turnBytes: 20_000 } });
    for (let n = 0; n < 40; n++) {
      say({ type: 'message-metadata', messageMetadata: { note: `${n}`.repeat(1_000) } });
    }
    expect(await ann.until(({ type }) => type === 'message.finalize')).toMatchObject({
      code: 'turn-too-large',
    });
  });

  it('that sends a frame of a million things that are no chunks holds the event loop for a moment at most', async () => {
    const { chain, runner, turnId, ann } = await startHostileTurn();
    runner.send(
      `{"type":"chunks","turnId":"${turnId}","seq":2,"chunks":[${'7,'.repeat(999_999)}7]}`,
    );
    const began = performance.now();
    const bob = await joinSession(chain, { user: 'bob' });
    expect(performance.now() - began).toBeLessThan(3_000);
    bob.close();
    runner.chunks(turnId, 3, [text('still here'), { type: 'finish' }]);
    await ann.until(({ type }) => type === 'message.finalize');
    expect(ann.text('t')).toBe('still here');
  });

  it.each([
    ['chunk of a turn', (about: object) => ({ type: 'chunks', ...about })],
    ['session event', () => ({ type: 'event', event: { type: 'diff', x: 'x'.repeat(6_000) } })],
  ])('that sends a %s over eventBytes reaches no client with it', async (_, toFrame) => {
    const { chain, ann, runner, turnId } = await startHostileTurn({
      limits: { eventBytes: 5_000 },
    });
    const chunks = [text('before'), text('x'.repeat(6_000))];
    runner.send(toFrame({ turnId, seq: 2, chunks }));
    runner.chunks(turnId, 3, [{ type: 'finish' }]);
    await ann.until(({ type }) => type === 'message.finalize');
    expect(JSON.stringify(ann.events)).not.toContain('xxx');
    expect(chain.sessions.metrics.toText()).toContain(
      'sabir_limit_refusals_total{limit="sessions.eventBytes"} 1\n',
    );
  });

  it('that sends many chunks in one frame may exceed eventBytes with all of them together', async () => {
    const { ann, say, finish } = await startHostileTurn({ limits: { eventBytes: 5_000 } });
    say(...Array.from({ length: 10 }, () => text('x'.repeat(4_000))));
    expect(await finish()).toMatchObject({ reason: 'end_turn' });
    expect(ann.text('t')).toHaveLength(40_000);
  });

  it.each([
    ['the id of another turn', 'other'],
    ['V2’s name of the turn', 't'],
    ['the id of its prompt', 'p'],
    ['its id as a list', ['TURN']],
    ['its id as an object', { toString: 'TURN' }],
    ['no id', undefined],
    ['an empty id', ''],
  ])('cannot write into a turn with %s', async (_, named) => {
    const { chain, ann, runner, turnId, finish } = await startHostileTurn();
    const bob = await joinSession(chain, { user: 'bob', sessionId: 'other' });
    const forged = JSON.parse(JSON.stringify({ named }).replace('TURN', turnId ?? ''));
    for (const seq of [1, 2, 3, 99]) runner.chunks(forged.named, seq, [text('forged')]);
    await finish();
    expect(ann.of('message.part.text-delta')).toEqual([]);
    expect(bob.of('message.part.text-delta')).toEqual([]);
  });

  it.each([
    ['0', 0],
    ['below zero', -1],
    ['a fraction', 2.5],
    ['text', '2'],
    ['a list', [2]],
    ['too large to be exact', '9007199254740993'],
    ['infinite', '1e999'],
  ])('cannot number a frame with %s', async (_, seq) => {
    const { ann, runner, turnId, finish } = await startHostileTurn();
    const number = typeof seq === 'string' && seq.length > 1 ? seq : JSON.stringify(seq);
    const chunks = JSON.stringify([text('unheard')]);
    runner.send(`{"type":"chunks","turnId":"${turnId}","seq":${number},"chunks":${chunks}}`);
    await finish();
    expect(ann.text('t')).toBe('');
    expect(runner.of('ack').every(({ seq: acked }) => Number(acked) <= 2)).toBe(true);
  });

  it('cannot number its frames so that the frames of the next runner, or of the next turn, are skipped', async () => {
    const { chain, runner, ann, turnId } = await startHostileTurn();
    runner.chunks(turnId, Number.MAX_SAFE_INTEGER, [text('last'), { type: 'finish' }]);
    await ann.until(({ type }) => type === 'message.finalize');
    runner.socket.close();
    await runner.closed;
    const next = await connectRunner(chain, { runnerId: 'honest' });
    ann.send({ type: 'prompt', content: 'Again', promptId: 'p2', turnId: 't2' });
    const { prompt } = await next.until('prompt');
    const second = Object(prompt).turnId;
    next.chunks(second, 1, [text('heard')]);
    next.chunks(second, 2, [{ type: 'finish' }]);
    await ann.until(({ type, turnId: of }) => type === 'message.finalize' && of === 't2');
    expect(ann.text('t2')).toBe('heard');
  });

  it('cannot replay a frame that has arrived', async () => {
    const { ann, runner, turnId } = await startHostileTurn();
    for (const seq of [7, 7, 3, 1, 7]) runner.chunks(turnId, seq, [text('once')]);
    runner.chunks(turnId, 8, [{ type: 'finish' }]);
    await ann.until(({ type }) => type === 'message.finalize');
    expect(ann.of('message.part.text-delta').map(({ delta }) => delta)).toEqual(['once']);
  });

  it('gets no ack for a frame before it is in the log, and none for a turn that it invents', async () => {
    const { chain, runner, turnId = '' } = await startHostileTurn();
    const acked: unknown[] = [];
    runner.socket.on('message', async (data) => {
      const { type, seq } = JSON.parse(String(data));
      if (type === 'ack') acked.push([seq, (await chain.store.log.get(turnId))?.lastSeq]);
    });
    for (let seq = 2; seq < 10; seq++) runner.chunks(turnId, seq, [text(`${seq}`)]);
    await runner.until('ack', ({ seq }) => seq === 9);
    // `start` and `text-start` come before the deltas.
    for (const [seq, lastSeq] of acked as number[][])
      expect(lastSeq).toBeGreaterThanOrEqual((seq ?? 0) + 1);
    runner.send({ type: 'ack', turnId, seq: 1e9 });
    await runner.settled();
    expect(runner.of('ack').filter(({ seq }) => Number(seq) > 9)).toEqual([]);
  });

  it('that goes on with a turn that has ended changes nothing of it, and its frames are confirmed', async () => {
    const { chain, ann, runner, turnId = '', finish } = await startHostileTurn();
    await finish();
    const ended = await chain.store.log.get(turnId);
    const stored = chain.store.open('s').messages();
    for (let seq = 3; seq < 50; seq++) runner.chunks(turnId, seq, [text('late')]);
    await runner.until('ack', ({ seq }) => seq === 49);
    expect(await chain.store.log.get(turnId)).toEqual(ended);
    expect(chain.store.open('s').messages()).toEqual(stored);
    expect(ann.text()).toBe('');
  });

  it('that was stopped and goes on talking reaches no client, and the next prompt is answered', async () => {
    const { ann, runner, turnId, say } = await startHostileTurn();
    say(text('Half '));
    await ann.until(({ type }) => type === 'message.part.text-delta');
    ann.send({ type: 'abort', turnId: 't' });
    expect(await ann.until(({ type }) => type === 'message.finalize')).toMatchObject({
      reason: 'canceled',
    });
    await runner.until('stop');
    say(text('late'), question('late'));
    ann.send({ type: 'prompt', content: 'Again', promptId: 'p2', turnId: 't2' });
    const next = await runner.until('prompt', ({ prompt }) => Object(prompt).turnId !== turnId);
    say(text('late too'));
    const second = Object(next.prompt).turnId;
    runner.chunks(second, 1, [text('new'), { type: 'finish' }]);
    await ann.until(({ type, turnId: of }) => type === 'message.finalize' && of === 't2');
    expect([ann.text('t'), ann.text('t2')]).toEqual(['Half ', 'new']);
    expect(ann.of('question')).toEqual([]);
  });

  it.each([
    ['that it works on another turn', { turnId: 'invented', known: ['invented'] }],
    ['that it works on nothing, and knows the turn', { known: ['TURN'] }],
    ['that it works on the turn, and does not know it', { turnId: 'TURN' }],
  ])('that says in the middle of its turn %s can go on with it, once', async (_, hello) => {
    const { ann, runner, turnId = '', say, finish } = await startHostileTurn();
    say(text('one '));
    for (let n = 0; n < 20; n++) {
      runner.hello(JSON.parse(JSON.stringify(hello).replaceAll('TURN', turnId)));
    }
    await runner.settled();
    say(text('two'));
    await finish();
    expect(ann.text('t')).toBe('one two');
    expect(ann.of('message.finalize')).toHaveLength(1);
    expect(ann.of('message.create')).toHaveLength(1);
  });
});
