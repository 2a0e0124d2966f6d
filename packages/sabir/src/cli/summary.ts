/** What `sabir serve` prints when it is up. */
import type { ServeOptions } from './serve-flags.ts';

export type SummaryOptions = Pick<
  ServeOptions,
  'page' | 'secrets' | 'jwtSecret' | 'runnerToken' | 'isOpenToAll' | 'database'
> & {
  url: string;
  /** What the agent says it is, its model included. */
  agent: string;
  hasColors: boolean;
};

const LABEL_WIDTH = 11;
const FIRST_PROMPT = { role: 'user', parts: [{ type: 'text', text: 'Ahoy! A berth, please.' }] };

export function toSummary(options: SummaryOptions): string {
  const { url, agent, database, hasColors } = options;
  const bold = (text: string) => (hasColors ? `\x1b[1m${text}\x1b[22m` : text);
  const dim = (text: string) => (hasColors ? `\x1b[2m${text}\x1b[22m` : text);
  const token = toShownToken(options);
  const line = (label: string, value: string, note = '') =>
    `  ${dim(label.padEnd(LABEL_WIDTH))}${value}${note && `  ${dim(note)}`}`;
  const lines = [
    bold('Sabir is up.'),
    '',
    ...pageLines(options, token).map(([value, note]) => line('Page', bold(value), note)),
    line('Chat', `POST ${url}/api/sessions/:id/chat`, 'for useChat'),
    line('', `POST ${url}/api/chat`, 'for useChatStream'),
    line('WebSocket', `${url.replace(/^http/, 'ws')}/api/sessions/:id/ws?role=client`),
    line('Health', `${url}/healthz`),
    line('Database', database === ':memory:' ? 'none: chats end with this process' : database),
    line('Agent', agent),
    ...whoLines(options).map((text, i) => line(i === 0 ? 'Let in' : '', text)),
    '',
    `Try it${token?.note ? `, with ${token.note}` : ''}:`,
    toCurl(url, token?.header),
  ];
  return `${lines.join('\n')}\n`;
}

type ShownToken = {
  /** The header, as a word for a shell. */
  header: string;
  /** As part of an address; not where that would write down a secret that was not. */
  address?: string;
  note?: string;
};

/**
 * What was given as a flag is in the shell's history already; what came by the environment was
 * meant to be written nowhere, so there the variable is named.
 */
function toShownToken({ secrets, jwtSecret }: SummaryOptions): ShownToken | undefined {
  const owners = secrets.filter(({ role }) => role === 'owner');
  const [first] = owners;
  if (first && !first.isFromEnvironment) {
    return {
      header: quote(`Authorization: Bearer ${first.secret}`),
      address: encodeURIComponent(first.secret),
    };
  }
  if (first && owners.length === 1) {
    const variable = first.isNamed ? `\${SABIR_TOKEN#${first.name}=}` : '$SABIR_TOKEN';
    return { header: `"Authorization: Bearer ${variable}"` };
  }
  if (secrets.length === 0 && jwtSecret === undefined) return undefined;
  return { header: '"Authorization: Bearer $TOKEN"', note: 'a token in the variable TOKEN' };
}

/** As one word for a shell, whatever is in it. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function pageLines(
  { url, page }: SummaryOptions,
  token: ShownToken | undefined,
): [address: string, note: string][] {
  if (page === 'none') return [];
  if (!token) return [[`${url}/`, '']];
  if (token.address) return [[`${url}/#token=${token.address}`, '']];
  return [[`${url}/`, 'asks for a token; or put #token=… behind it']];
}

function whoLines({ secrets, jwtSecret, runnerToken, isOpenToAll }: SummaryOptions): string[] {
  const named = (role: string) =>
    [...new Set(secrets.filter((one) => one.role === role).map(({ name }) => name))].join(', ');
  const lines: string[] = [];
  if (named('owner')) lines.push(`with a token: ${named('owner')}`);
  if (named('viewer')) lines.push(`with a token, to watch only: ${named('viewer')}`);
  if (jwtSecret !== undefined) lines.push('with a JWT: whoever its sub names, as its role says');
  if (lines.length === 0) {
    lines.push(
      isOpenToAll ? 'everybody who can reach it, as owner' : 'everybody on this machine, as owner',
    );
  }
  if (runnerToken !== undefined) lines.push('runners on other machines, with their token');
  return lines;
}

/** In one line, so that it can be copied whole. */
function toCurl(url: string, header: string | undefined): string {
  const body = JSON.stringify({ id: 'first', messages: [FIRST_PROMPT] });
  return [
    `curl -N ${url}/api/sessions/first/chat`,
    ...(header === undefined ? [] : [`-H ${header}`]),
    "-H 'Content-Type: application/json'",
    `-d ${quote(body)}`,
  ].join(' ');
}
