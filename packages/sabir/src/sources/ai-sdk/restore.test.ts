import { expect, it } from 'vitest';
import { play, USER } from '../../../test/play-agent.ts';
import type { Chunk } from '../../core/chunks.ts';
import { SabirError, UPSTREAM_SILENT } from '../../core/errors.ts';
import type { AgentPrompt } from '../../turns/agent.ts';
import { asUpstream } from './upstream.ts';

const { signal } = new AbortController();
const where = { sessionId: 's', user: USER, role: 'owner', signal } as const;
const QUESTION: Chunk = { type: 'data-question', id: 'q', data: { questionId: 'q' } };

async function* asking(): AsyncGenerator<Chunk> {
  yield QUESTION;
}

it('tells what waits where somebody keeps it', async () => {
  const asked: unknown[] = [];
  const keeping = asUpstream({
    name: 'keeping',
    prompt: asking,
    restore(chat) {
      asked.push(chat);
      return chat.chatKey === 'k' ? { messageId: 'm', userId: 'u' } : undefined;
    },
  });
  expect(keeping.canWait).toBe(true);
  const session = await keeping.open(where);
  const chat = { chatId: 'c', chatKey: 'k', user: { id: 'other' } };
  expect(await session.waiting?.(chat)).toEqual({ messageId: 'm', userId: 'u' });
  expect(await session.waiting?.({ ...chat, chatKey: 'l' })).toBeUndefined();
  expect(asked[0]).toEqual({ ...chat, sessionId: 's' });
});

it('tells nothing where nobody does', async () => {
  const forgetful = asUpstream(asking);
  expect(forgetful.canWait).toBeUndefined();
  expect((await forgetful.open(where)).waiting).toBeUndefined();
});

it('runs the handler again for what goes on, which waits for the answer as before', async () => {
  const turns: AgentPrompt[] = [];
  const upstream = asUpstream(async function* (turn) {
    turns.push(turn);
    yield QUESTION;
    yield { type: 'data-heard', data: await turn.answer('q') };
  });
  const given = { chatKey: 'k', messageId: 'kept', isRestored: true, text: '' } as const;
  const { turn, chunks, over } = play(await upstream.open(where), given);
  await expect.poll(() => chunks.length).toBe(2);
  const answer = { approved: false, reason: 'no' };
  turn.answer({ type: 'answer', questionId: 'q', answer });
  await over;
  expect(turns).toMatchObject([{ isRestored: true, messageId: 'kept', chatKey: 'k' }]);
  expect(chunks.slice(0, -1)).toEqual([
    { type: 'start', messageId: 'kept' },
    QUESTION,
    { ...QUESTION, data: { questionId: 'q', status: 'answered', answer } },
    { type: 'data-heard', data: answer },
  ]);
});

it.each([
  ['nobody has stopped it', new SabirError(UPSTREAM_SILENT), { code: 'upstream-silent' }],
  ['somebody has stopped it', undefined, { name: 'AbortError' }],
])('tells a handler that waits that %s', async (_, given, reason) => {
  const heard = Promise.withResolvers<unknown[]>();
  const upstream = asUpstream(async function* ({ answer, signal: own }) {
    yield QUESTION;
    await answer('q').catch((error: unknown) => heard.resolve([error, own.reason]));
  });
  const { turn, chunks } = play(await upstream.open(where), { chatKey: 'k', text: '' });
  await expect.poll(() => chunks.length).toBe(2);
  turn.stop(given);
  expect(await heard.promise).toMatchObject([reason, reason]);
});
