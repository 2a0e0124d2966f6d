/** A process that is killed between any two steps of a session's turn, and the one that opens the file after it. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type CrashCopy, copyAtEveryChange } from '../../../test/crash-copies.ts';
import { idsOf, message } from '../../../test/session-storage-helpers.ts';
import {
  CLOSING,
  chunksOf,
  delta,
  FINISHED,
  OPENING,
  readAll,
} from '../../../test/turn-log-helpers.ts';
import type { Chunk } from '../../core/chunks.ts';
import { verifyChunks } from '../../core/verify.ts';
import { type Agent, createSessions, type SessionStore } from '../../sessions/index.ts';
import type { OrphanedTurn } from '../../turns/log.ts';
import { readWritten, toMessage } from '../../turns/read-written.ts';
import { sqliteSessionStore } from './sqlite-sessions.ts';

const CHILD = fileURLToPath(new URL('../../../test/sqlite-steps-child.ts', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'sabir-crash-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = () => join(folder, `${++files}.db`);

function open(file: string): SessionStore {
  const store = sqliteSessionStore({ file, lockTimeoutMs: 0 });
  onTestFinished(() => store.close());
  return store;
}

describe('a process that is killed between two steps of a turn', () => {
  /** The steps in their order, and how many chunks are acknowledged behind each. */
  const STEPS: [step: string, lastSeq: number | undefined][] = [
    ['prompt stored', undefined],
    ['half taken up', undefined],
    ['taken up', undefined],
    ['begun', 0],
    ['appended', 2],
    ['appended with a mark', 3],
    ['answered', 3],
    ['appended to the end', 5],
    ['store entered', 5],
    ['message stored', 5],
    ['store left', 5],
    ['closed', 5],
  ];
  const chunks: Chunk[] = [...OPENING, delta('a'), ...CLOSING];
  const placeOf = (name: string) => STEPS.findIndex(([step]) => step === name);

  it.each(STEPS)('behind “%s” has kept all of it, and nothing by half', async (step, lastSeq) => {
    const file = newFile();
    const { signal, stdout, stderr } = spawnSync(process.execPath, [CHILD, file, step]);
    expect([signal, `${stderr}`]).toEqual(['SIGKILL', '']);
    expect(`${stdout}`.trim().split('\n')).toHaveLength(placeOf(step) + 1);

    const isBehind = (name: string) => placeOf(step) >= placeOf(name);
    const store = open(file);
    const session = store.open('s');
    const orphans: OrphanedTurn[] = [];
    store.log.onOrphan(async (orphan) => orphans.push(orphan) > 0);

    const isEnded = step === 'closed';
    const status = isEnded ? 'ended' : isBehind('taken up') ? 'running' : 'queued';
    expect(session.prompt('p')?.status).toBe(status);
    expect(idsOf(session.messages())).toEqual([
      ...(isBehind('taken up') ? ['p'] : []),
      ...(isEnded ? ['m-p'] : []),
    ]);
    const turn = await store.log.get('t-p');
    expect(turn?.lastSeq).toBe(lastSeq);
    expect(turn?.outcome).toEqual(isEnded ? FINISHED : undefined);
    const written = lastSeq ? await readWritten(store.log, 't-p', lastSeq) : [];
    expect(written).toEqual(chunks.slice(0, lastSeq ?? 0));
    expect(orphans).toHaveLength(isBehind('begun') && !isEnded ? 1 : 0);

    // The next process continues the turn and ends it, with its message.
    for (const { mark, origin, writer } of orphans) {
      const marked = isBehind('appended with a mark') ? 7 : 0;
      expect(mark).toBe(isBehind('appended to the end') ? 9 : marked);
      expect(origin).toEqual({ session: 's', promptId: 'p' });
      await writer.append(chunks.slice(lastSeq));
      await writer.close(FINISHED, () => {
        session.addMessage(message('m-p', { role: 'assistant', promptId: 'p' }));
        session.updatePrompt('p', { status: 'ended', outcome: 'finished' });
      });
      const commands = [];
      for await (const command of writer.commands()) commands.push(command);
      expect(commands).toHaveLength(isBehind('answered') ? 1 : 0);
    }
    store.close();
    if (!isBehind('begun')) return;
    const third = open(file);
    expect(await third.log.get('t-p')).toMatchObject({ lastSeq: 5, outcome: FINISHED });
    expect(chunksOf(await readAll(third.log, 't-p'))).toEqual(chunks);
    expect(idsOf(third.open('s').messages())).toEqual(['p', 'm-p']);
  });
});

type Acknowledged =
  | { what: 'accepted' | 'ended'; promptId: string }
  | { what: 'read'; promptId: string; chunks: Chunk[] };

describe('a session whose process is killed at any moment', () => {
  const tick = () => new Promise<void>((resolve) => void setImmediate(resolve));
  const member = { user: { id: 'ann' }, role: 'collaborator' } as const;
  const PROMPTS = ['p1', 'p2'];

  /** Says two things, and asks a question in between if `asks` names the prompt's text. */
  const createAgent = (asks?: string): Agent => ({
    name: 'test',
    async *prompt({ text, ask }) {
      yield { type: 'text-delta', delta: 'One ' };
      await tick();
      if (text === asks) await ask({ text: 'Sure?', questionId: 'q' });
      await tick();
      yield { type: 'text-delta', delta: 'two' };
    },
  });

  /** Runs two prompts, of which one waits, and answers the question of the first. */
  async function runAndCopy(file: string): Promise<CrashCopy<Acknowledged>[]> {
    const store = open(file);
    const { acknowledge, stop } = copyAtEveryChange<Acknowledged>(file);
    const sessions = createSessions({ store, agent: () => createAgent('p1') });
    const { session } = sessions.hold('s');
    const reading: Promise<void>[] = [];
    const read = async (promptId: string, turnId: string) => {
      for await (const batch of store.log.read(turnId, 0, new AbortController().signal)) {
        const chunks = batch.map(({ chunk }) => chunk);
        acknowledge({ what: 'read', promptId, chunks });
        const isAsked = chunks.some(({ type }) => type === 'data-question');
        if (isAsked && session.running) {
          void session.answer('q', 'yes', member).catch(() => undefined);
        }
      }
    };
    session.subscribe((notice) => {
      if (notice.type === 'begun') reading.push(read(notice.prompt.promptId, notice.prompt.turnId));
      if (notice.type === 'ended') acknowledge({ what: 'ended', promptId: notice.prompt.promptId });
    });
    for (const promptId of PROMPTS) {
      session.prompt({ promptId, text: promptId, bytes: 100 }, member);
      acknowledge({ what: 'accepted', promptId });
    }
    await vi.waitFor(() => expect(session.isIdle).toBe(true));
    await Promise.all(reading);
    const copies = stop();
    await sessions.close();
    return copies;
  }

  /** What must hold in every file that a process has left, whatever it was doing. */
  async function checkFile(store: SessionStore, acknowledged: Acknowledged[]) {
    const session = store.open('s');
    const states: string[] = [];
    for (const promptId of PROMPTS) {
      const prompt = session.prompt(promptId);
      const about = acknowledged.filter((one) => one.promptId === promptId);
      if (about.some(({ what }) => what === 'accepted')) expect(prompt).toBeDefined();
      if (!prompt) continue;
      const { turnId, messageId, status, outcome } = prompt;
      const turn = await store.log.get(turnId);
      const messages = session.messages();
      const asked = messages.filter(({ id }) => id === promptId);
      const answers = messages.filter(
        (one) => one.role === 'assistant' && one.promptId === promptId,
      );
      states.push(`${status}, turn ${turn ? turn.status : 'not begun'}`);
      if (about.some(({ what }) => what === 'ended')) expect(status).toBe('ended');
      expect(asked).toHaveLength(status === 'queued' ? 0 : 1);
      // The prompt's end, its answer and the end of its turn are there together or not at all.
      expect(answers.map(({ id }) => id)).toEqual(status === 'ended' ? [messageId] : []);
      expect(turn?.outcome?.status).toBe(status === 'ended' ? outcome : undefined);
      const chunks = turn ? await readWritten(store.log, turnId, turn.lastSeq) : [];
      const read = about.flatMap((one) => (one.what === 'read' ? one.chunks : []));
      expect(chunks.slice(0, read.length)).toEqual(read);
      if (status !== 'ended') continue;
      expect(verifyChunks(chunks)).toEqual([]);
      expect(answers[0]?.parts).toEqual(toMessage(chunks, messageId).parts);
    }
    return states;
  }

  it('leaves a file that is whole, and the next process answers every prompt it had accepted', async () => {
    const copies = await runAndCopy(newFile());
    const seen = new Set<string>();
    for (const { file, acknowledged } of copies) {
      const store = open(file);
      for (const state of await checkFile(store, acknowledged)) seen.add(state);
      const sessions = createSessions({ store, agent: () => createAgent() });
      sessions.recover();
      await vi.waitFor(() => expect(store.unfinished()).toEqual([]));
      const accepted = PROMPTS.filter((promptId) => store.open('s').prompt(promptId));
      const ended = accepted.map((promptId): Acknowledged => ({ what: 'ended', promptId }));
      await checkFile(store, [...acknowledged, ...ended]);
      await sessions.close();
      store.close();
    }
    expect([...seen].sort()).toEqual([
      'ended, turn ended',
      'queued, turn not begun',
      'running, turn not begun',
      'running, turn queued',
      'running, turn running',
    ]);
  });

  it('has replaced a message with its prompt accepted, or neither, and goes on from there', async () => {
    const file = newFile();
    const store = open(file);
    const sessions = createSessions({ store, agent: () => createAgent() });
    const { session } = sessions.hold('s');
    const isIdle = () => vi.waitFor(() => expect(session.isIdle).toBe(true), 5_000);
    const asked = { text: 'first', userMessageId: 'u', bytes: 100 };
    session.prompt({ ...asked, promptId: 'p1' }, member);
    await isIdle();
    const before = session.storage.messages();
    const { acknowledge, stop } = copyAtEveryChange<'accepted'>(file);
    session.prompt({ ...asked, promptId: 'p2', replaces: 'u', text: 'second' }, member);
    acknowledge('accepted');
    await isIdle();
    const copies = stop();
    await sessions.close();
    const seen = new Set<number>();
    for (const { file: left, acknowledged } of copies) {
      const copy = open(left);
      const kept = copy.open('s');
      const isAccepted = kept.prompt('p2') !== undefined;
      if (acknowledged.includes('accepted')) expect(isAccepted).toBe(true);
      expect(kept.replacedMessages('p2')).toEqual(isAccepted ? before : []);
      if (!isAccepted) expect(kept.messages()).toEqual(before);
      const next = createSessions({ store: copy, agent: () => createAgent() });
      next.recover();
      await vi.waitFor(() => expect(copy.unfinished()).toEqual([]), 5_000);
      const [question, answer, ...others] = kept.messages();
      expect(question).toMatchObject({ id: 'u', promptId: isAccepted ? 'p2' : 'p1' });
      expect([answer?.role, others]).toEqual(['assistant', []]);
      seen.add(isAccepted ? kept.replacedMessages('p2').length : 0);
      await next.close();
      copy.close();
    }
    expect(seen).toContain(2);
  });
});
