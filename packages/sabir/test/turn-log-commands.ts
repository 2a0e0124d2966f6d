/** The part of `turn-log-conformance.ts` that is about commands. */
import { expect, it } from 'vitest';
import { MOST_COMMANDS, MOST_STEER_BYTES, type Steer } from '../src/turns/log.ts';
import { beginTurn, FINISHED, type Suite, sleep, WHOLE_TURN } from './turn-log-helpers.ts';

export function describeTurnLogCommands({ open }: Suite): void {
  const answer = (at: number) =>
    ({ type: 'answer', questionId: `q${at}`, answer: { at } }) as const;

  const steer = (id: string) =>
    ({
      type: 'steer',
      id,
      text: 'More!',
      attachments: [{ url: 'data:,x', mediaType: 'text/plain' }],
      by: { userId: 'carl', role: 'collaborator' },
    }) as const satisfies Steer;

  it('to a writer, once and in order, also those that came before it listened', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    expect(await log.command(writer.turnId, answer(0))).toBe(true);
    expect(await log.command(writer.turnId, answer(1))).toBe(true);
    const received: unknown[] = [];
    for await (const command of writer.commands()) {
      received.push(command);
      if (command.type === 'stop') break;
      const at = received.length + 1;
      const next = at < 6 ? answer(at) : ({ type: 'stop', reason: 'asked' } as const);
      if (at <= 6) expect(await log.command(writer.turnId, next)).toBe(true);
    }
    const answers = [0, 1, 2, 3, 4, 5].map(answer);
    expect(received).toEqual([...answers, { type: 'stop', reason: 'asked' }]);
  });

  it('but of the answers to a question the first alone', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    const answers = await Promise.all(
      [1, 2, 3].map((at) => log.command(writer.turnId, { ...answer(0), answer: at })),
    );
    expect(answers).toEqual([true, false, false]);
    expect(await log.command(writer.turnId, answer(1))).toBe(true);
    await writer.close(FINISHED);
    const received: unknown[] = [];
    for await (const command of writer.commands()) received.push(command);
    expect(received).toEqual([{ ...answer(0), answer: 1 }, answer(1)]);
  });

  it('but of the messages with one id the first alone', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    const steers = await Promise.all(
      ['one', 'two'].map((text) => log.command(writer.turnId, { ...steer('m1'), text })),
    );
    expect(steers).toEqual([true, false]);
    expect(await log.command(writer.turnId, steer('m2'))).toBe(true);
    expect(await log.command(writer.turnId, { ...answer(0), questionId: 'm1' })).toBe(true);
    await writer.close(FINISHED);
    expect(await log.command(writer.turnId, steer('m3'))).toBe(false);
    const received: unknown[] = [];
    for await (const command of writer.commands()) received.push(command);
    expect(received).toEqual([
      { ...steer('m1'), text: 'one' },
      steer('m2'),
      { ...answer(0), questionId: 'm1' },
    ]);
  });

  it('but no more messages than a turn may be given, and rejects the others', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    const given = await Promise.allSettled(
      Array.from({ length: MOST_COMMANDS + 3 }, (_, at) =>
        log.command(writer.turnId, steer(`m${at}`)),
      ),
    );
    expect(given.filter(({ status }) => status === 'fulfilled')).toHaveLength(MOST_COMMANDS);
    expect(given.at(-1)).toMatchObject({ reason: { code: 'cannot-steer' } });
    expect(await log.command(writer.turnId, steer('m0'))).toBe(false);
    expect(await log.command(writer.turnId, answer(0))).toBe(true);
    expect(await log.command(writer.turnId, { type: 'stop' })).toBe(true);
  });

  it('but no more bytes of messages than a turn may be given, files included', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    const text = 'x'.repeat(MOST_STEER_BYTES / 2);
    const attachments = [{ url: text, mediaType: 'text/plain' }];
    const say = (id: string, message: Partial<Steer>) =>
      log.command(writer.turnId, { ...steer(id), text: '', attachments: [], ...message });
    const full = { code: 'cannot-steer' };
    await expect(say('m1', { text: `${text}x`, attachments })).rejects.toMatchObject(full);
    expect(await say('m2', { text })).toBe(true);
    expect(await say('m3', { attachments })).toBe(true);
    await expect(say('m4', { text: 'x' })).rejects.toMatchObject(full);
    expect(await log.command(writer.turnId, answer(0))).toBe(true);
  });

  it('to a writer that waits for one', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    const commands = writer.commands()[Symbol.asyncIterator]();
    for (let at = 0; at < 3; at++) {
      const next = commands.next();
      await sleep(1);
      await log.command(writer.turnId, answer(at));
      expect((await next).value).toEqual(answer(at));
    }
  });

  it('until the turn has ended, and none that was taken is lost', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    await log.command(writer.turnId, answer(0));
    await writer.append(WHOLE_TURN);
    await writer.close(FINISHED);
    expect(await log.command(writer.turnId, { type: 'stop' })).toBe(false);
    const received: unknown[] = [];
    for await (const command of writer.commands()) received.push(command);
    expect(received).toEqual([answer(0)]);
  });

  it('no more when the turn ends while the writer listens', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    const next = writer.commands()[Symbol.asyncIterator]().next();
    await writer.close(FINISHED);
    expect((await next).done).toBe(true);
  });

  it('to nobody in a turn that is unknown', async () => {
    const log = await open();
    expect(await log.command('unknown', { type: 'stop' })).toBe(false);
  });

  it('to whoever goes on listening for the writer', async () => {
    const log = await open();
    const writer = await beginTurn(log);
    const leaves = writer.commands()[Symbol.asyncIterator]();
    const next = leaves.next();
    await leaves.return?.();
    expect((await next).done).toBe(true);
    await log.command(writer.turnId, answer(0));
    for await (const command of writer.commands()) {
      expect(command).toEqual(answer(0));
      break;
    }
  });
}
