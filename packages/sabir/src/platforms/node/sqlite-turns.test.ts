import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import {
  chatBody,
  createAgent,
  createTestGateway,
  createUser,
  openSse,
  readChunks,
} from '../../../test/gateway-client.ts';
import { createLedAgent } from '../../../test/led-agent.ts';
import { admitGateway, gatewayToken } from '../../../test/link-rig.ts';
import { startSessionChain } from '../../../test/session-chain.ts';
import { describeTurnLog } from '../../../test/turn-log-conformance.ts';
import {
  beginTurn,
  CLOSING,
  chunksOf,
  delta,
  FINISHED,
  OPENING,
  readAll,
  request,
  sleep,
} from '../../../test/turn-log-helpers.ts';
import { TURN_LOST_MESSAGE } from '../../core/errors.ts';
import { sessionServerUpstream } from '../../sessions/index.ts';
import type { LoggedChunk, OrphanedTurn, TurnLog } from '../../turns/log.ts';
import { inTransaction } from './sqlite-database.ts';
import { type SqlDatabase, sqliteTurnLog } from './sqlite-turns.ts';

const folder = mkdtempSync(join(tmpdir(), 'sabir-turns-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const newFile = () => join(folder, `turns-${++files}.db`);

describeTurnLog('SQLite', (options) => sqliteTurnLog({ database: newFile(), ...options }));

/** Takes over every turn that it is offered. */
function adoptAll(log: TurnLog): OrphanedTurn[] {
  const orphans: OrphanedTurn[] = [];
  log.onOrphan(async (orphan) => {
    orphans.push(orphan);
    return true;
  });
  return orphans;
}

describe('turns in a SQLite file', () => {
  it('are offered for takeover by the next process, with origin, mark, commands and questions', async () => {
    const database = newFile();
    const first = sqliteTurnLog({ database });
    const given = { sessionId: 's\0', chatId: 'c', origin: { a: [1] } };
    const writer = await beginTurn(first, given);
    await writer.append([...OPENING, delta('a\0'), delta('\ud800')], 7);
    const question = { questionId: 'q', status: 'open' };
    await writer.append([{ type: 'data-question', id: 'q', data: question }], 9);
    await first.command(writer.turnId, { type: 'answer', questionId: 'q', answer: 'x' });
    const before = await first.get(writer.turnId);
    await first.close();

    const second = sqliteTurnLog({ database });
    expect(await second.get(writer.turnId)).toEqual(before);
    const [orphan] = adoptAll(second);
    expect(orphan).toMatchObject({ turn: before, origin: { a: [1] }, mark: 9 });
    await orphan?.writer.append(CLOSING);
    await orphan?.writer.close(FINISHED);
    const commands = [];
    for await (const command of orphan?.writer.commands() ?? []) commands.push(command);
    expect(commands).toEqual([{ type: 'answer', questionId: 'q', answer: 'x' }]);
    const chunks = chunksOf(await readAll(second, writer.turnId));
    expect(chunks.slice(0, 4)).toEqual([...OPENING, delta('a\0'), delta('\ud800')]);
    expect(chunks.slice(-2)).toEqual(CLOSING);
    await second.close();
  });

  it('are the same request after a restart, live and ended', async () => {
    const database = newFile();
    const first = sqliteTurnLog({ database });
    const [live, ended] = [request(), request()];
    const writer = await beginTurn(first, live);
    const other = await beginTurn(first, ended);
    await other.append([...OPENING, ...CLOSING]);
    await other.close(FINISHED);
    await first.close();
    const second = sqliteTurnLog({ database });
    expect(await second.begin(live)).toMatchObject({ existing: { turnId: writer.turnId } });
    expect(await second.begin(ended)).toMatchObject({ existing: { outcome: FINISHED } });
    await second.close();
  });

  it('are lost after a lease without a takeover, and forgotten after their retention', async () => {
    const database = newFile();
    const first = sqliteTurnLog({ database });
    const writer = await beginTurn(first);
    await writer.append(OPENING);
    await first.close();
    const second = sqliteTurnLog({ database, leaseMs: 50, retentionMs: 200 });
    await expect
      .poll(async () => (await second.get(writer.turnId))?.outcome)
      .toEqual({
        status: 'lost',
      });
    expect(chunksOf(await readAll(second, writer.turnId)).at(-1)).toMatchObject({ type: 'finish' });
    await expect.poll(async () => second.get(writer.turnId)).toBeUndefined();
    await second.close();
    const third = sqliteTurnLog({ database });
    expect(await third.get(writer.turnId)).toBeUndefined();
    await third.close();
  });

  it('fence a writer that gave its turn up, and offer the turn to others of the process', async () => {
    const log = sqliteTurnLog({ database: newFile() });
    const orphans = adoptAll(log);
    const writer = await beginTurn(log);
    await writer.append(OPENING);
    await writer.release();
    await expect.poll(() => orphans.length).toBe(1);
    await expect(writer.append([delta('late')])).rejects.toMatchObject({ code: 'turn-fenced' });
    expect(await orphans[0]?.writer.append([delta('on')])).toBe(3);
    await log.close();
  });

  it('are there though another turn is damaged, which is forgotten', async () => {
    const database = newFile();
    const first = sqliteTurnLog({ database });
    const [damaged, whole] = [await beginTurn(first), await beginTurn(first)];
    for (const writer of [damaged, whole]) await writer.append(OPENING);
    await first.close();
    const file = new DatabaseSync(database);
    file.prepare(`UPDATE turn_append SET chunks = '{' WHERE turn_id = ?`).run(damaged.turnId);
    file.close();
    const second = sqliteTurnLog({ database });
    expect(await second.get(damaged.turnId)).toBeUndefined();
    expect(await second.get(whole.turnId)).toMatchObject({ lastSeq: 2 });
    // Its id can be begun again.
    expect((await beginTurn(second, { turnId: damaged.turnId })).turnId).toBe(damaged.turnId);
    await second.close();
    const third = sqliteTurnLog({ database });
    expect(await third.get(damaged.turnId)).toMatchObject({ lastSeq: 0 });
    await third.close();
  });

  it('belong to one process at a time: a second one gets the reason', async () => {
    const database = newFile();
    const log = sqliteTurnLog({ database });
    expect(() => sqliteTurnLog({ database, lockTimeoutMs: 10 })).toThrow(/is in use/);
    await log.close();
    const again = sqliteTurnLog({ database });
    await again.close();
  });
});

/** A database whose transactions fail while `isFull`. */
function createFillableDisk() {
  const database = new DatabaseSync(':memory:');
  const disk = { isFull: false };
  const sql: SqlDatabase = {
    query: (statement, ...values) =>
      database.prepare(statement).all(...values) as Record<string, unknown>[],
    transaction(run) {
      if (disk.isFull) throw new Error('database or disk is full');
      inTransaction(database, run);
    },
    // The next log of the test opens it again.
    close: () => undefined,
  };
  return { disk, sql };
}

describe('turns on a disk that is full for a while', () => {
  const failed = { code: 'log-failed' };

  it('refuse what they cannot write, and number what follows without a gap', async () => {
    const { disk, sql } = createFillableDisk();
    const log = sqliteTurnLog({ database: sql });
    const [one, other] = [await beginTurn(log), await beginTurn(log)];
    await one.append(OPENING);
    disk.isFull = true;
    await expect(one.append([delta('never')])).rejects.toMatchObject(failed);
    await expect(log.begin(request())).rejects.toMatchObject(failed);
    disk.isFull = false;
    expect(await one.append([delta('a')])).toBe(3);
    expect(await other.append(OPENING)).toBe(2);
    await log.close();
    const again = sqliteTurnLog({ database: sql });
    expect(await again.get(one.turnId)).toMatchObject({ lastSeq: 3 });
    expect(await again.live('s', 'c')).toHaveLength(2);
    await again.close();
  });

  it('end when their end can be written, and not before', async () => {
    const { disk, sql } = createFillableDisk();
    const log = sqliteTurnLog({ database: sql });
    const writer = await beginTurn(log);
    await writer.append([...OPENING, ...CLOSING]);
    disk.isFull = true;
    await expect(writer.close(FINISHED)).rejects.toMatchObject(failed);
    expect((await log.get(writer.turnId))?.status).toBe('running');
    disk.isFull = false;
    await writer.close(FINISHED);
    expect((await log.get(writer.turnId))?.outcome).toEqual(FINISHED);
    await log.close();
  });

  it('end with what `store` keeps when both can be written, and not before', async () => {
    const { disk, sql } = createFillableDisk();
    sql.query('CREATE TABLE history (message TEXT)');
    const log = sqliteTurnLog({ database: sql });
    const writer = await beginTurn(log);
    await writer.append([...OPENING, ...CLOSING]);
    const keep = () => void sql.query('INSERT INTO history VALUES (?)', writer.turnId);
    const keepAndFail = () => {
      keep();
      throw new Error('database or disk is full');
    };
    const kept = () => sql.query('SELECT message FROM history');
    await expect(writer.close(FINISHED, keepAndFail)).rejects.toMatchObject(failed);
    disk.isFull = true;
    await expect(writer.close(FINISHED, keep)).rejects.toMatchObject(failed);
    expect(kept()).toEqual([]);
    expect((await log.get(writer.turnId))?.status).toBe('running');
    disk.isFull = false;
    await writer.close(FINISHED, keep);
    expect(kept()).toEqual([{ message: writer.turnId }]);
    await log.close();
    const again = sqliteTurnLog({ database: sql });
    expect((await again.get(writer.turnId))?.outcome).toEqual(FINISHED);
    await again.close();
  });

  it('keep what another turn writes in the tick in which the `store` of one throws', async () => {
    const { sql } = createFillableDisk();
    const log = sqliteTurnLog({ database: sql });
    const [one, other] = [await beginTurn(log), await beginTurn(log)];
    const appending = one.append(OPENING);
    // The append is noted in a microtask, and written after this tick.
    await Promise.resolve();
    const fail = () => {
      throw new Error('no');
    };
    await expect(other.close(FINISHED, fail)).rejects.toMatchObject(failed);
    expect(await appending).toBe(2);
    await log.close();
    const again = sqliteTurnLog({ database: sql });
    expect(await again.get(one.turnId)).toMatchObject({ lastSeq: 2 });
    await again.close();
  });

  it('take an answer that could not be written before', async () => {
    const { disk, sql } = createFillableDisk();
    const log = sqliteTurnLog({ database: sql });
    const writer = await beginTurn(log);
    const answer = { type: 'answer', questionId: 'q', answer: 1 } as const;
    disk.isFull = true;
    await expect(log.command(writer.turnId, answer)).rejects.toMatchObject(failed);
    disk.isFull = false;
    expect(await log.command(writer.turnId, answer)).toBe(true);
    expect(await log.command(writer.turnId, answer)).toBe(false);
    await log.close();
  });

  it('are not offered again at once by a writer that could not write', async () => {
    const { disk, sql } = createFillableDisk();
    const log = sqliteTurnLog({ database: sql, leaseMs: 300 });
    const orphans = adoptAll(log);
    const writer = await beginTurn(log);
    disk.isFull = true;
    await expect(writer.append(OPENING)).rejects.toMatchObject(failed);
    await writer.release();
    await sleep(50);
    expect(orphans).toHaveLength(0);
    disk.isFull = false;
    await expect.poll(() => orphans.length).toBe(1);
    await log.close();
  });

  it('refuse an append also when another turn is lost in the same tick', async () => {
    const { disk, sql } = createFillableDisk();
    let time = 0;
    const log = sqliteTurnLog({ database: sql, leaseMs: 30_000, elapsed: () => time });
    const [held, left] = [await beginTurn(log), await beginTurn(log)];
    time = 20_000;
    await held.renew();
    time = 31_000;
    disk.isFull = true;
    const appending = held.append(OPENING);
    appending.catch(() => undefined);
    // The append is noted in a microtask; looking at the other turn then finds it lost.
    for (let at = 0; at < 5; at++) await Promise.resolve();
    expect((await log.get(left.turnId))?.outcome).toEqual({ status: 'lost' });
    await expect(appending).rejects.toMatchObject(failed);
    disk.isFull = false;
    await log.close();
  });

  it('are offered behind an append that their writer has not finished, with its mark', async () => {
    const { sql } = createFillableDisk();
    const log = sqliteTurnLog({ database: sql });
    const orphans = adoptAll(log);
    const writer = await beginTurn(log);
    // A position of the agent's own making need not be a whole number.
    const appending = writer.append(OPENING, 5.5);
    await writer.release();
    expect(await appending).toBe(2);
    await expect.poll(() => orphans.length).toBe(1);
    expect(orphans[0]).toMatchObject({ turn: { lastSeq: 2 }, mark: 5.5 });
    await log.close();
  });

  it('keep the order in which they began over a restart, also within a millisecond', async () => {
    const { sql } = createFillableDisk();
    const log = sqliteTurnLog({ database: sql, now: () => 1_000 });
    const writers = [];
    for (let at = 0; at < 5; at++) writers.push(await beginTurn(log));
    await log.close();
    const again = sqliteTurnLog({ database: sql });
    const ids = writers.map(({ turnId }) => turnId);
    expect((await again.live('s', 'c')).map(({ turnId }) => turnId)).toEqual(ids);
    expect((await again.latest('s', 'c'))?.turnId).toBe(ids.at(-1));
    await again.close();
  });
});

describe('a process that is killed while it writes a turn', () => {
  it('loses nothing that was acknowledged: the next one continues behind it', async () => {
    const database = newFile();
    const child = fileURLToPath(new URL('../../../test/sqlite-turns-child.ts', import.meta.url));
    let acknowledged = 0;
    for (let round = 0; round < 8; round++) {
      const running = spawn(process.execPath, [child, database], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let said = '';
      running.stdout.on('data', (bytes) => {
        said += bytes;
      });
      const from = acknowledged;
      await expect.poll(() => said.split('\n').length, { timeout: 10_000 }).toBeGreaterThan(3);
      await sleep(round * 7);
      running.kill('SIGKILL');
      await once(running, 'close');
      acknowledged = Number(said.split('\n').at(-2));
      expect(acknowledged).toBeGreaterThan(from);
    }
    const log = sqliteTurnLog({ database });
    const [turn] = await log.live('s', 'c');
    const controller = new AbortController();
    const read = log.read(turn?.turnId ?? '', 0, controller.signal)[Symbol.asyncIterator]();
    const { value } = await read.next();
    const entries: LoggedChunk[] = value ?? [];
    controller.abort();
    expect(entries.length).toBeGreaterThanOrEqual(acknowledged);
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, at) => at + 1));
    expect(chunksOf(entries)).toEqual(entries.map((_, at) => delta(`${at + 1} `)));
    await log.close();
  });
});

describe('a gateway that is started again on the same file', () => {
  const agent = createLedAgent();

  /** A gateway in front of a session server, as one process would have it. */
  function open(database: string, port: number) {
    const log = sqliteTurnLog({ database });
    const gateway = createTestGateway(
      sessionServerUpstream({ url: `http://127.0.0.1:${port}`, WebSocket, token: gatewayToken }),
      { log },
    );
    return { log, carl: createUser(gateway, 'carl'), gateway };
  }

  it('continues the turn, and a viewer that comes back has all of it', async () => {
    const database = newFile();
    const { port } = await startSessionChain({ agent, admitGateway });
    const first = open(database, port);
    const before = openSse(
      await first.carl.post(chatBody('go'), { headers: { 'x-sabir-detach': '1' } }),
    );
    const run = await agent.run();
    run.text('One ', 'two ');
    await before.until(() => before.text().includes('two'));
    // As after a crash: the gateway has closed nothing, and the file is free.
    await first.log.close();

    const second = open(database, port);
    const after = openSse(await second.carl.resume());
    run.text('three');
    run.end();
    await after.ended;
    expect(after.text()).toBe('One two three');
    expect(after.chunks().at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' });
    await second.gateway.close();
    await first.gateway.close();
    await second.log.close();
  });

  it('ends a turn whose agent was in the old process, with a reason', async () => {
    const database = newFile();
    const generator = createAgent();
    const log = sqliteTurnLog({ database });
    const carl = createUser(createTestGateway(generator.upstream, { log }), 'carl');
    const before = openSse(await carl.post(chatBody('go')));
    (await generator.run()).delta('half');
    await before.until(() => before.text());
    await log.close();
    const again = sqliteTurnLog({ database });
    const gateway = createTestGateway(createAgent().upstream, { log: again });
    const chunks = await readChunks(
      await createUser(gateway, 'carl').resumeAt(before.frames.findLast(({ id }) => id)?.id ?? ''),
    );
    expect(chunks).toContainEqual({ type: 'error', errorText: TURN_LOST_MESSAGE });
    await gateway.close();
    await again.close();
  });
});
