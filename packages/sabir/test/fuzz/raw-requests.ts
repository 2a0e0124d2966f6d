/** Requests as bytes: nearly what a client would send, or nothing like it. */
import { mutateBytes } from './mutate-bytes.ts';
import type { Random } from './random.ts';
import {
  bodyFor,
  CHAT_BODY,
  headerText,
  METHODS,
  mangleToken,
  pathFor,
  ROUTES,
} from './requests.ts';

const HOSTS = [
  ...['localhost', '127.0.0.1', '127.0.0.1:1', '[::1]', '', 'a b', 'user:pass@localhost', 'x/../y'],
  ...['localhost:99999999', 'localhost:-1', '\xff', 'evil.test', '[::', '%00', 'http://x'],
];
const CONTENT_TYPES = [
  ...['application/json', 'text/plain', 'multipart/form-data', 'application/x-www-form-urlencoded'],
  ...['application/json; charset=utf-16', '', '\xff\xfe', 'text/event-stream'],
];
const TARGETS = [
  '//',
  '///',
  '//evil.test/api',
  '*',
  'http://',
  'http://evil.test',
  '/\\',
  '/%',
  '?',
];
const HEADERS = [
  ...['Last-Event-ID: t:1', 'Origin: null', 'Origin: http://evil.test', 'Cookie: token=%', 'X: '],
  ...['Expect: 100-continue', 'Transfer-Encoding: identity', 'X-Sabir-Ai-Sdk: 7', 'Upgrade: h2c'],
  ...['Accept-Encoding: gzip;q=NaN', 'Range: bytes=0-', 'Content-Encoding: gzip', '__proto__: x'],
  ...['Sec-Fetch-Site: cross-site', 'X-Forwarded-Host: evil.test', 'Connection: upgrade'],
];
const ANSWER = { questionId: 'q', answer: { approved: true } };
const TOKEN = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl';

const encoder = new TextEncoder();
const latin = (text: string) => Buffer.from(text, 'latin1');
const join = (...parts: Uint8Array[]) => Buffer.concat(parts);

function targetFor(random: Random): string {
  if (random.chance(0.05)) return random.pick(TARGETS);
  if (random.chance(0.1)) return `http://localhost${pathFor(random)}`;
  return random.chance(0.4) ? random.pick(ROUTES) : pathFor(random);
}

function headFor(random: Random, method: string, target: string, more: string[]): Buffer {
  const version = random.chance(0.95) ? 'HTTP/1.1' : random.pick(['HTTP/1.0', 'HTTP/2.0', 'HTTP']);
  const lines = [`${method} ${target} ${version}`];
  if (random.chance(0.97)) {
    lines.push(`Host: ${random.chance(0.85) ? 'localhost' : random.pick(HOSTS)}`);
  }
  if (random.chance(0.85)) lines.push('Authorization: Bearer ann');
  else lines.push(`Authorization: Bearer ${mangleToken(TOKEN, random)}`);
  if (random.chance(0.2)) lines.push(headerText(random.pick(HEADERS), random));
  if (random.chance(0.3)) lines.push(random.pick(HEADERS));
  // More than Node takes, or than anybody has.
  if (random.chance(0.02)) lines.push(`X-Large: ${'x'.repeat(random.pick([10_000, 70_000]))}`);
  if (random.chance(0.02)) lines.push(...Array.from({ length: 2_500 }, (_, n) => `X-${n}: ${n}`));
  return latin(`${[...lines, ...more].join('\r\n')}\r\n\r\n`);
}

/** A body in chunks whose lengths may be anything, and which may never end. */
function chunked(body: Uint8Array, random: Random): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const piece = body.subarray(at, at + 1 + random.below(500));
    const said = random.chance(0.95)
      ? piece.length
      : random.pick([-1, 0, 2 ** 40, piece.length + 1]);
    pieces.push(latin(`${said.toString(16)}\r\n`), Buffer.from(piece), latin('\r\n'));
    at += piece.length;
    if (random.chance(0.03)) return join(...pieces);
  }
  return join(...pieces, latin(random.chance(0.8) ? '0\r\n\r\n' : '0\r\n'));
}

function plainRequest(random: Random): Buffer {
  const method = random.chance(0.85)
    ? random.pick(['GET', 'POST', 'POST'])
    : random.pick([...METHODS, 'TRACE', 'CONNECT', 'post', 'G\0T', 'M-SEARCH']);
  const target = targetFor(random);
  const close = 'Connection: close';
  if (method === 'GET' || method === 'HEAD') return headFor(random, method, target, [close]);
  const type = `Content-Type: ${random.pick(CONTENT_TYPES)}`;
  const body = random.chance(0.1)
    ? random.bytes(random.below(300))
    : bodyFor(random, random.chance(0.2) ? ANSWER : CHAT_BODY);
  if (random.chance(0.3)) {
    const head = headFor(random, method, target, [close, type, 'Transfer-Encoding: chunked']);
    return join(head, chunked(body, random));
  }
  const length = random.chance(0.9)
    ? body.length
    : random.pick([-1, 0, 1e9, body.length - 1, '1e3']);
  const head = headFor(random, method, target, [close, type, `Content-Length: ${length}`]);
  return join(head, body);
}

/** Any bytes that somebody may send to the port. */
export function requestBytes(random: Random): Buffer {
  const kind = random.below(12);
  if (kind === 0) return Buffer.from(random.bytes(random.below(400)));
  const request = plainRequest(random);
  if (kind === 1) return Buffer.from(mutateBytes(request, random, 1 + random.below(10)));
  if (kind === 2) return request.subarray(0, random.below(request.length));
  if (kind === 3) return join(request, plainRequest(random));
  return request;
}

const WS_PATHS = [
  ...['/api/sessions/s1/ws?role=client', '/api/sessions/s1/ws', '/api/sessions/s1/ws?role=runner'],
  ...['/api/sessions/s1/ws?role=client&dialect=v2&messages=3', '/api/sessions/%/ws', '/api/chat'],
  ...['/api/sessions/s1/ws?role=runner&runnerId=r', '/api/sessions/..%2f/ws', '//', '//x/ws', '*'],
  ...['/api/sessions/nobody/ws?role=client', '/api/sessions/s1/ws?messages=1e9&channelType=web'],
];
const UPGRADES = [
  ...['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];
const ODD_UPGRADES = [
  ...[
    'Upgrade: h2c',
    'Sec-WebSocket-Version: 99',
    'Sec-WebSocket-Key: short',
    'Origin: http://evil',
  ],
  ...['Sec-WebSocket-Protocol: sabir, bearer.x', 'Sec-WebSocket-Protocol: ,,', 'Connection: close'],
  'Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=x',
];

/** A frame of a client, masked; or one in which something about it is a lie. */
function socketFrame(random: Random, body: Uint8Array): Buffer {
  const isSound = random.chance(0.7);
  const opcode = isSound ? 1 : random.below(16);
  const flags = isSound ? 0x80 : random.pick([0x80, 0, 0xc0, 0xf0]);
  const length = isSound || random.chance(0.7) ? body.length : random.pick([0, 125, 126, 2 ** 40]);
  const mask = isSound || random.chance(0.8) ? 0x80 : 0;
  const head = [flags | opcode];
  if (length < 126) head.push(mask | length);
  else if (length < 65_536) head.push(mask | 126, length >> 8, length & 255);
  else
    head.push(
      mask | 127,
      ...Array.from({ length: 8 }, (_, at) => (at < 3 ? random.below(4) : 255)),
    );
  // A mask of zeros changes nothing.
  return join(Buffer.from(head), Buffer.alloc(mask ? 4 : 0), body);
}

/** A handshake, and what is said behind it. */
export function socketBytes(random: Random, messages: readonly unknown[]): Buffer {
  const lines = [...UPGRADES];
  if (random.chance(0.15)) lines.push(random.pick(ODD_UPGRADES));
  if (random.chance(0.1)) lines.splice(random.below(lines.length), 1);
  const host = `Host: ${random.chance(0.8) ? 'localhost' : random.pick(HOSTS)}`;
  const path = random.chance(0.6) ? (WS_PATHS[0] as string) : random.pick(WS_PATHS);
  const who = `Authorization: Bearer ${random.pick(['ann', 'ann', 'ann', 'runner-token', '', 'x'])}`;
  const head = latin(`${[`GET ${path} HTTP/1.1`, host, who, ...lines].join('\r\n')}\r\n\r\n`);
  const frames = messages.map((message) => {
    const text = encoder.encode(typeof message === 'string' ? message : JSON.stringify(message));
    const body = random.chance(0.1) ? mutateBytes(text, random, 2) : text;
    return socketFrame(random, body);
  });
  const bytes = join(head, ...frames);
  return random.chance(0.15) ? Buffer.from(mutateBytes(bytes, random, 1 + random.below(4))) : bytes;
}
