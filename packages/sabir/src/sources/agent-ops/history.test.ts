import { describe, expect, it } from 'vitest';
import { agentOpsPerTest } from '../../../test/agent-ops-rig.ts';
import { defaultScript, sayWhen } from '../../../test/agent-ops-script.ts';
import { comparable } from '../../../test/comparable.ts';
import { ann, promptOf, until, watch } from '../../../test/upstream-turn.ts';
import { foldChunks } from '../../core/fold.ts';
import type { UIMessage } from '../../core/message.ts';
import type { User } from '../../turns/upstream.ts';
import { toHistory } from './history.ts';

const { start, openAt } = agentOpsPerTest();
const text = (value: string) => ({ type: 'text', text: value });
const finish = { type: 'finish', reason: 'end_turn' };
const user = (id: string, content: string) => ({ id, role: 'user', content });
const answer = (id: string, ...parts: object[]) => ({ id, role: 'assistant', content: '', parts });
const ids = (messages: UIMessage[]) => messages.map(({ id }) => id);

describe('a session’s history', () => {
  it('is what was streamed, under the same ids, after a reload', async () => {
    const server = await start({ dialect: 'v2' });
    const session = await openAt(server);
    const streamed: unknown[] = [];
    for (const name of ['text', 'tool', 'toolerror']) {
      const watched = watch(session, promptOf(`[rfc-${name}]`));
      await watched.done;
      streamed.push(comparable(foldChunks(watched.chunks)));
    }
    session.close();
    const history = await (await openAt(server)).history?.(ann);
    expect(history?.filter(({ role }) => role === 'assistant').map(comparable)).toEqual(streamed);
    expect(history?.filter(({ role }) => role === 'user')).toEqual(
      ['text', 'tool', 'toolerror'].map((name, at) => ({
        id: `prompt-${at + 1}-s`,
        role: 'user',
        parts: [{ type: 'text', text: `[rfc-${name}]` }],
      })),
    );
    await until(() => server.live.length === 1);
  });

  it('is of this moment, without the answer that is being written, with what was aborted', async () => {
    const gate = Promise.withResolvers<void>();
    const server = await start({
      script: (said) =>
        said === 'slow' ? sayWhen(gate.promise, 'Half ', 'and whole.') : defaultScript(said),
    });
    const session = await openAt(server);
    const stopped = watch(session, promptOf('slow'));
    await until(() => stopped.text === 'Half ');
    stopped.turn.stop();
    await stopped.done;
    const slow = watch(session, promptOf('slow'));
    await until(() => slow.text === 'Half ');
    expect(ids((await session.history?.(ann)) ?? [])).toEqual([
      'prompt-1-s',
      'turn-1-s',
      'prompt-2-s',
    ]);
    gate.resolve();
    await slow.done;
    const history = (await session.history?.(ann)) ?? [];
    expect(ids(history)).toEqual(['prompt-1-s', 'turn-1-s', 'prompt-2-s', 'turn-2-s']);
    expect(history[1]).toMatchObject({ metadata: { outcome: 'stopped' } });
    expect(history[1]?.parts).toContainEqual({ ...text('Half '), state: 'done' });
  });

  it('comes from elsewhere where the server does not tell it', async () => {
    const server = await start({ release: 'head' });
    await expect((await openAt(server)).history?.(ann)).rejects.toMatchObject({
      code: 'no-history',
    });
    const asked: unknown[] = [];
    const history = async (sessionId: string, { id }: { id: string }) => {
      asked.push([sessionId, id]);
      return server.messages(sessionId);
    };
    const session = await openAt(server, { history });
    await watch(session, promptOf('hello')).done;
    expect(ids((await session.history?.(ann)) ?? [])).toEqual(['prompt-1-s', 'turn-1-s']);
    expect(asked).toEqual([['s', 'ann']]);
  });

  it('is read once for all who ask at the same time, and anew for who asks later', async () => {
    const server = await start();
    const session = await openAt(server);
    await watch(session, promptOf('one')).done;
    const read = await Promise.all(Array.from({ length: 100 }, () => session.history?.(ann)));
    expect(read.every((messages) => messages?.length === 2)).toBe(true);
    expect(server.connections).toHaveLength(2);
    await watch(session, promptOf('two')).done;
    expect(await session.history?.(ann)).toHaveLength(4);
    expect(server.connections).toHaveLength(3);
  });

  it('is read with what proves who asks now, and never with that of another', async () => {
    const server = await start();
    const token = (asking: User) => String(asking.token);
    const session = await openAt(server, { token });
    const users = ['old', 'new', 'new'].map((given) => ({ ...ann, token: given }));
    await Promise.all(users.map((user) => session.history?.(user)));
    const shown = server.connections.slice(1).map(({ headers }) => headers.authorization);
    expect(shown.toSorted()).toEqual(['Bearer new', 'Bearer old']);
  });

  it('from elsewhere does not wait long for a server that tells nothing', async () => {
    const server = await start({ hasInit: false });
    const kept = [{ id: 'm1', role: 'user', content: 'Hello' }];
    const session = await openAt(server, { history: async () => kept });
    const askedAt = Date.now();
    expect(await session.history?.(ann)).toHaveLength(1);
    expect(Date.now() - askedAt).toBeLessThan(3_000);
  });

  it('cannot be had from a server that is gone', async () => {
    const server = await start();
    const session = await openAt(server);
    server.fault({ refuse: 500 });
    await expect(session.history?.(ann)).rejects.toMatchObject({ code: 'upstream-unreachable' });
  });
});

describe('toHistory', () => {
  it('leaves out the last answer while it is being written, wherever it stands', () => {
    const running = answer('a2', text('Half'));
    const before = [user('u1', 'x'), answer('a1', text('Hi'), finish), user('u2', 'y')];
    const busy = { runnerBusy: true, promptsQueued: 0 };
    expect(ids(toHistory([...before, running], busy))).toEqual(['u1', 'a1', 'u2']);
    expect(ids(toHistory([...before, running], { runnerBusy: true }))).toEqual(['u1', 'a1', 'u2']);
    const queued = [...before, running, user('u3', 'z')];
    expect(ids(toHistory(queued, { runnerBusy: true, promptsQueued: 1 }))).toEqual([
      'u1',
      'a1',
      'u2',
      'u3',
    ]);
    // Here u3 is what the runner works on: a2 was aborted, and the next has not begun.
    expect(ids(toHistory(queued, busy))).toEqual(['u1', 'a1', 'u2', 'a2', 'u3']);
    expect(ids(toHistory([...before, running], {}))).toEqual(['u1', 'a1', 'u2', 'a2']);
    expect(ids(toHistory([...before, answer('a2')], {}))).toEqual(['u1', 'a1', 'u2']);
  });

  it('shows files, however the server keeps them', () => {
    const [message] = toHistory(
      [
        {
          ...user('u', ''),
          parts: [
            { type: 'image', data: 'AAAA', mimeType: 'image/png', filename: 'a.png' },
            { type: 'file', url: 'https://x.test/b.pdf', mime: 'application/pdf' },
            { type: 'image', mimeType: 'image/png' },
            null,
            7,
          ],
        },
      ],
      {},
    );
    expect(message?.parts).toEqual([
      {
        type: 'file',
        mediaType: 'image/png',
        url: 'data:image/png;base64,AAAA',
        filename: 'a.png',
      },
      { type: 'file', mediaType: 'application/pdf', url: 'https://x.test/b.pdf' },
    ]);
  });

  it('tolerates whatever a server has kept', () => {
    const messages = toHistory(
      [
        null,
        7,
        'x',
        {},
        { id: 7, role: 'user' },
        { id: 'no-role' },
        { id: 'tool', role: 'tool', content: '', parts: { toolName: 'x' } },
        { id: 'system', role: 'system', content: 'Model switched.', parts: { a: 1 } },
        { id: 'odd', role: 'assistant', content: 'Words only.', parts: { channel: 'slack' } },
        { id: 'old', role: 'assistant', content: 'No parts.' },
        { id: 'bad', role: 'assistant', content: '', parts: [null, 7, text('Good.'), finish] },
        { id: 'empty', role: 'assistant', content: '' },
        {
          id: 'failed',
          role: 'assistant',
          content: '',
          parts: [
            { type: 'error', message: 'No.' },
            { type: 'finish', reason: 'error' },
          ],
        },
      ],
      {},
    );
    expect(ids(messages)).toEqual(['system', 'odd', 'old', 'bad', 'failed']);
    const said = messages.flatMap(({ parts }) => parts.filter(({ type }) => type === 'text'));
    expect(said).toMatchObject(['Model switched.', 'Words only.', 'No parts.', 'Good.'].map(text));
    expect(messages.at(-1)).toMatchObject({ metadata: { outcome: 'failed' } });
  });
});
