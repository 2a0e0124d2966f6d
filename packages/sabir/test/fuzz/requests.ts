/** What people send: bodies, tokens, cursors, addresses; into the functions that read them. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { parseChatRequest, readJson } from '../../src/core/chat-request.ts';
import { toChatPost } from '../../src/gateway/chat-post.ts';
import { asUpstream, createChatGateway, jwtAuth, sessionAccess } from '../../src/gateway/index.ts';
import { wireOf } from '../../src/gateway/open-wire.ts';
import { DEFAULT_LIMITS } from '../../src/gateway/options.ts';
import { channelOf, clientOf, cursorOf } from '../../src/gateway/visit.ts';
import { mutateBytes, splitBytes, toFrameBytes } from './mutate-bytes.ts';
import { mutateValue } from './mutate-json.ts';
import type { Random } from './random.ts';
import { checkSame, countRefusal, InvalidOutput, type Target, withinTime } from './target.ts';

export const CHAT_BODY = {
  id: 'c1',
  sessionId: 's1',
  trigger: 'submit-message',
  messageId: 'm1',
  projectId: 'p',
  messages: [
    { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hello' }] },
    {
      id: 'a1',
      role: 'assistant',
      parts: [
        { type: 'text', text: 'Hi', state: 'done' },
        {
          type: 'tool-deploy',
          toolCallId: 'call',
          state: 'approval-responded',
          input: {},
          approval: { id: 'approve', approved: true, reason: 'go' },
        },
      ],
    },
    {
      id: 'u2',
      role: 'user',
      parts: [
        { type: 'text', text: 'And this?' },
        {
          type: 'file',
          url: 'data:text/plain;base64,aGk=',
          mediaType: 'text/plain',
          filename: 'x',
        },
      ],
    },
  ],
};
const BODY_WORDS = ['user', 'assistant', 'system', 'text', 'file', 's1', 's2', 'c1', 'u1'];

/** A body that is nearly what a chat sends, in pieces. */
export function bodyFor(random: Random, given: unknown = CHAT_BODY): Uint8Array {
  let value: unknown = given;
  const edits = 1 + random.below(4);
  for (let edit = 0; edit < edits; edit++) {
    value = mutateValue(value, { random, words: BODY_WORDS });
  }
  return toFrameBytes(value, random).bytes;
}

function requestOf(random: Random, bytes: Uint8Array, url = 'http://gateway.test/'): Request {
  const pieces = splitBytes(bytes, random, 300);
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = pieces.shift();
      if (piece) controller.enqueue(piece);
      else if (random.chance(0.03)) controller.error(new TypeError('cut'));
      else controller.close();
    },
  });
  return new Request(url, { method: 'POST', body, duplex: 'half' } as RequestInit);
}

const chatRequest: Target = {
  name: 'chat request',
  async play(random) {
    const bytes = bodyFor(random);
    const refused = await countRefusal(async () => {
      const limit = random.chance(0.1) ? 200 : 1_000_000;
      const { messages } = await parseChatRequest(requestOf(random, bytes), limit);
      if (!messages.every(({ id, parts }) => typeof id === 'string' && Array.isArray(parts))) {
        throw new InvalidOutput('a message without id or parts');
      }
    });
    return { malformed: 1, sound: 0, refused, out: 1 - refused };
  },
};

const chatPost: Target = {
  name: 'chat post',
  async play(random) {
    const limits = random.chance(0.1)
      ? { ...DEFAULT_LIMITS, bodyBytes: 300, attachmentBytes: 10 }
      : DEFAULT_LIMITS;
    const refused = await countRefusal(async () => {
      const where = { user: { id: 'u' }, channel: undefined, limits };
      const body = await readJson(requestOf(random, bodyFor(random)), limits);
      const post = await toChatPost(body, where);
      if (post.chatId === '' || post.chatId.length > 512) throw new InvalidOutput('a bad chat id');
      if (post.kind === 'prompt' && typeof post.text !== 'string') throw new InvalidOutput('text');
    });
    return { malformed: 1, sound: 0, refused, out: 1 - refused };
  },
};

const CURSORS = ['t:1', 't:0', ':1', 't:', 't:-1', 't:1e3', 't:1.5', 't:NaN', 't:9007199254740993'];
const QUERIES = ['lastEventId', 'wire', 'aiSdk', 'channelType', 'channelId', '__proto__', ''];
const VALUES = ['ai-sdk', 'contract', '5', '6', '7', 'web', '%00', '%ff', '%', '__proto__', '..'];

/** Text as a header may carry it. */
export function headerText(text: string, random: Random): string {
  const bytes = mutateBytes(new TextEncoder().encode(text), random, random.below(3));
  const allowed = Array.from(bytes, (byte) => String.fromCharCode(byte));
  return allowed.filter((char) => /[\t\x20-\x7e\x80-\xff]/.test(char)).join('');
}

const cursors: Target = {
  name: 'cursors, wires, channels',
  async play(random) {
    const url = new URL('http://gateway.test/api/sessions/s1/chat/c1/stream');
    for (let i = random.below(4); i > 0; i--) {
      url.searchParams.append(random.pick(QUERIES), random.pick([...VALUES, ...CURSORS]));
    }
    const headers = new Headers({ 'x-sabir-ai-sdk': random.pick(VALUES) });
    if (random.chance(0.8)) headers.set('last-event-id', headerText(random.pick(CURSORS), random));
    const visit = {
      request: new Request(url, { headers }),
      url,
      requestId: 'r',
      startedAt: 0,
      address: undefined,
    };
    const cursor = cursorOf(visit);
    if (cursor && (!Number.isSafeInteger(cursor.seq) || cursor.seq < 0)) {
      throw new InvalidOutput('a cursor that is no place');
    }
    clientOf(visit.request, url);
    channelOf(url);
    const refused = await countRefusal(() => wireOf(visit, 'ai-sdk'));
    return { malformed: 1, sound: 0, refused, out: 1 };
  },
};

type Signer = { token: string; auth: (request: Request) => Promise<unknown> };
let signers: Promise<Signer[]> | undefined;
const SECRET = 'a secret that is long enough for anybody';

async function createSigners(): Promise<Signer[]> {
  const shared = await new SignJWT({ name: 'Ann', role: 'owner' })
    .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject('ann')
    .setExpirationTime('10h')
    .sign(new TextEncoder().encode(SECRET));
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), alg: 'ES256', kid: 'k1' };
  const signed = await new SignJWT({ name: 'Ann' })
    .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
    .setSubject('ann')
    .setExpirationTime('10h')
    .sign(privateKey);
  const cookie = { name: 'token', origins: ['http://page.test'] };
  return [
    { token: shared, auth: jwtAuth({ secret: SECRET, cookie }) },
    { token: signed, auth: jwtAuth({ publicKey: jwk }) },
    { token: signed, auth: jwtAuth({ jwks: { keys: [jwk] }, issuer: ['x'] }) },
  ];
}

const toPart = (value: unknown) => Buffer.from(JSON.stringify(value) ?? '').toString('base64url');

/** A token in which a part is another, or its header or claims say something else. */
export function mangleToken(token: string, random: Random): string {
  const parts = token.split('.');
  const at = random.below(parts.length);
  if (random.chance(0.5)) {
    let read: unknown;
    try {
      read = JSON.parse(Buffer.from(parts[at] as string, 'base64url').toString());
    } catch {
      read = random.pick([null, 1, 'x', []]);
    }
    const words = ['none', 'HS256', 'RS256', 'ES256', 'ann', 'k1', 'crit', 'b64', 'zip'];
    try {
      parts[at] = toPart(mutateValue(read, { random, words }));
    } catch {
      parts[at] = '';
    }
  } else if (random.chance(0.3)) parts.splice(at, random.below(2), random.pick(['', 'e30', '..']));
  const text = parts.join('.');
  return random.chance(0.4) ? headerText(text, random) : text;
}

const tokens: Target = {
  name: 'tokens',
  async play(random) {
    signers ??= createSigners();
    const { token, auth } = random.pick(await signers);
    const mangled = mangleToken(token, random);
    const scheme = random.pick(['Bearer ', 'bearer ', 'Bearer  ', 'Basic ', '', 'Bearer\t']);
    const headers = new Headers();
    if (random.chance(0.8)) headers.set('authorization', `${scheme}${mangled}`);
    else headers.set('cookie', `a=b; token=${mangled};;=; ${headerText('x=y', random)}`);
    const user = await auth(new Request('http://gateway.test/', { headers }));
    // Spare bits at the end of a part say nothing; whoever it lets in is who was signed.
    if (user !== null) checkSame((user as { id: unknown }).id, 'ann', 'somebody else was let in');
    return { malformed: 1, sound: 0, refused: user === null ? 1 : 0, out: user === null ? 0 : 1 };
  },
};

const PATHS = [
  ...['/api/sessions/s1/chat', '/api/sessions/s1/chat/c1/stream', '/api/sessions/s1/chat/c1/stop'],
  ...['/api/sessions/s1/chat/c1/answer', '/api/sessions/s1/messages', '/api/sessions/s1/channels'],
  ...['/api/chat', '/api/chat/s1/stream', '/api/chat/s1/stop', '/api/chat/s1/answer', '/metrics'],
  ...['/api/onboarding', '/api/onboarding/s1/stream', '/api/onboarding/s1/stop', '/healthz'],
  ...['/api/onboarding/s1/answer', '/', '/api', '/api/sessions'],
];
export const ROUTES: readonly string[] = PATHS;
const SEGMENTS = ['..', '.', '%2e%2e', '%00', '%', '%zz', '%c3%28', '%ed%a0%80', '__proto__', ''];
export const METHODS = ['GET', 'POST', 'OPTIONS', 'HEAD', 'PUT', 'DELETE', 'PATCH'];

/** An address that is nearly one of ours. */
export function pathFor(random: Random): string {
  const segments = random.pick(PATHS).split('/');
  if (random.chance(0.4)) {
    const at = 1 + random.below(segments.length);
    const more = random.chance(0.2) ? 'x'.repeat(3_000) : random.pick(SEGMENTS);
    segments.splice(at, random.below(2), more);
  }
  const path = segments.join('/') || '/';
  if (!random.chance(0.3)) return path;
  return `${path}?${random.pick(QUERIES)}=${random.pick([...VALUES, ...CURSORS])}`;
}

function createFuzzedGateway(problems: string[]) {
  const upstream = asUpstream(async function* ({ text }) {
    yield { type: 'text-start', id: '1' };
    yield { type: 'text-delta', id: '1', delta: `You said ${text}` };
  });
  return createChatGateway({
    upstream,
    authenticate: ({ headers }) => (headers.has('authorization') ? { id: 'ann' } : null),
    access: sessionAccess((sessionId) => (/^s\d/.test(sessionId) ? { ownerId: 'ann' } : null)),
    routes: { onboarding: { public: true } },
    cors: { origins: ['http://page.test'], credentials: true },
    timing: { shutdownMs: 0, disconnectGraceMs: 100 },
    logger: {
      warn: () => undefined,
      error: (message, details) => void problems.push(`${message} ${JSON.stringify(details)}`),
    },
  });
}

/** The gateway's own function, without a server before it: what no server would let through. */
function gatewayTarget(): Target {
  const problems: string[] = [];
  let gateway: ReturnType<typeof createFuzzedGateway> | undefined;
  return {
    name: 'gateway',
    async play(random) {
      gateway ??= createFuzzedGateway(problems);
      const url = `http://gateway.test${pathFor(random)}`;
      if (!URL.canParse(url)) return { malformed: 1, sound: 0, refused: 1, out: 0 };
      const method = random.chance(0.8) ? random.pick(['GET', 'POST']) : random.pick(METHODS);
      const headers = new Headers({ origin: random.pick(['http://page.test', 'null', 'x']) });
      if (random.chance(0.9)) headers.set('authorization', 'Bearer x');
      if (random.chance(0.3)) headers.set('last-event-id', headerText('t:1', random));
      if (random.chance(0.3)) headers.set('x-sabir-ai-sdk', headerText('7', random));
      const hasBody = method !== 'GET' && method !== 'HEAD' && random.chance(0.9);
      const answer = { questionId: 'q', answer: { approved: true } };
      const bytes = hasBody && bodyFor(random, random.chance(0.2) ? answer : CHAT_BODY);
      const init = { method, headers, ...(bytes && { body: Buffer.from(bytes) }) };
      const response = await gateway.fetch(new Request(url, init));
      const text = await withinTime(response.text(), `${method} ${url}`);
      if (problems.length > 0) throw new InvalidOutput(problems.splice(0).join('\n'));
      if (response.status >= 500) throw new InvalidOutput(`${response.status} ${text}`);
      const refused = response.status >= 400 ? 1 : 0;
      return { malformed: 1, sound: 0, refused, out: refused ? 0 : 1 };
    },
    async close() {
      await gateway?.close();
      gateway = undefined;
    },
  };
}

export const REQUEST_READERS: Target[] = [
  ...[chatRequest, chatPost, cursors, tokens],
  gatewayTarget(),
];
