/** Clients of follow streams, on plain sockets: a client object for each would be dear. */
import { connect, type Socket } from 'node:net';

const AT_ONCE = 50;

export type FollowSocket = {
  socket: Socket;
  chat: number;
  /** When the agent said its first word in the turn that answers this prompt, and when it came here. */
  untilWord(prompt: string): Promise<{ saidAt: number; seenAt: number }>;
};

const pathOf = (chat: number) => `/api/sessions/s${chat}/chat`;

function request(method: string, path: string, user: string, content = ''): string {
  const length = Buffer.byteLength(content);
  return (
    `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${user}\r\nX-Sabir-Detach: 1\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${content}`
  );
}

/** Resolves when the first state has come. */
function follow(port: number, chat: number, user: string): Promise<FollowSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<FollowSocket>();
  let wanted:
    | { prompt: string; resolve(word: { saidAt: number; seenAt: number }): void }
    | undefined;
  let text = '';
  const socket = connect({ port, host: '127.0.0.1' }, () => {
    socket.write(request('GET', `${pathOf(chat)}/c/follow`, user));
  });
  const follower: FollowSocket = {
    socket,
    chat,
    untilWord(prompt) {
      const seen = Promise.withResolvers<{ saidAt: number; seenAt: number }>();
      wanted = { prompt, resolve: seen.resolve };
      return seen.promise;
    },
  };
  socket.on('data', (bytes) => {
    text = (text + bytes).slice(-10_000);
    if (text.includes('event: follow.state')) resolve(follower);
    const [, saidAt] = (wanted && new RegExp(`${wanted.prompt} at ([\\d.]+)`).exec(text)) ?? [];
    if (saidAt === undefined) return;
    wanted?.resolve({ saidAt: Number(saidAt), seenAt: now() });
    wanted = undefined;
    text = '';
  });
  socket.on('error', reject);
  socket.on('close', () => reject(new Error(`closed early: ${text.slice(0, 500)}`)));
  return promise;
}

/** The same clock in all processes, finer than milliseconds. */
function now(): number {
  return performance.timeOrigin + performance.now();
}

export async function openFollowers(
  port: number,
  { count, chats }: { count: number; chats: number },
): Promise<FollowSocket[]> {
  const followers: FollowSocket[] = [];
  for (let at = 0; at < count; at += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - at) }, (_, i) =>
      follow(port, (at + i) % chats, `user-${at + i}`),
    );
    followers.push(...(await Promise.all(some)));
  }
  return followers;
}

/** Prompts in a chat, and does not stay for the answer. */
export async function post(port: number, chat: number, prompt: string): Promise<void> {
  const message = { id: `m-${prompt}`, role: 'user', parts: [{ type: 'text', text: prompt }] };
  const content = JSON.stringify({ id: 'c', messages: [message], trigger: 'submit-message' });
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write(request('POST', pathOf(chat), 'asker', content));
  await new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject));
  socket.destroy();
}
