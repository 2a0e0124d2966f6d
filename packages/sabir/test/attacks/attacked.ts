/** A gateway behind a real socket on this machine, and its users' way to it. */
import type { ChatGateway, ChatGatewayOptions } from '../../src/gateway/index.ts';
import type { ServeOptions } from '../../src/platforms/node/serve.ts';
import { createContractUser } from '../contract-client.ts';
import { createLogSpy, createTestGateway, createUser } from '../gateway-client.ts';
import { openSocket, startServer } from '../raw-http.ts';

export async function startAttacked(
  upstream: ChatGatewayOptions['upstream'],
  options: Partial<ChatGatewayOptions> = {},
  serveOptions: Partial<ServeOptions> = {},
) {
  const log = createLogSpy();
  const gateway = createTestGateway(upstream, { logger: log.logger, ...options });
  const { url, port } = await startServer(gateway.fetch, serveOptions);
  /** The same gateway, asked over the socket. */
  const remote: ChatGateway = {
    ...gateway,
    async fetch({ url: asked, method, headers, signal, body }) {
      const { pathname, search } = new URL(asked);
      const init = { method, headers, signal, body, duplex: 'half', redirect: 'manual' };
      return fetch(url + pathname + search, init as RequestInit);
    },
  };
  const user = (token: string | undefined, sessionId?: string) =>
    createUser(remote, token, sessionId);
  const nobody = user(undefined);
  return {
    gateway,
    url,
    port,
    user,
    stranger: createContractUser(remote, undefined, 'onboarding'),
    contractUser: (token: string) => createContractUser(remote, token),
    lines: log.lines,
    metrics: () => nobody.metrics(),
    /** How much of a limit is in use. */
    use: async (limit: string) => (await nobody.metrics())[`sabir_limit_use{limit="${limit}"}`],
    /** Says exactly these lines, the blank one included, and then the body. */
    say: (head: string[], body = '') =>
      openSocket(port, `${[...head, 'Host: localhost', '', ''].join('\r\n')}${body}`),
  };
}

/** The statuses of all answers that came over one socket. */
export function statusesOf(heard: string): number[] {
  return [...heard.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
}
