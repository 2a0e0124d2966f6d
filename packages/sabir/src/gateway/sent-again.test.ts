/** A regenerate is the same request each time: what one gets that is sent again because its response was lost. */
import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createTestGateway,
  createUser,
  eventually,
  ORIGIN,
  openSse,
} from '../../test/gateway-client.ts';
import { startHosted, turnOf } from '../../test/hosted-gateway.ts';
import { createLedAgent } from '../../test/led-agent.ts';
import { createClient } from '../../test/real-clients.ts';
import { saysOf } from '../../test/stock-pages.ts';
import { ChatStream, SabirChatTransport } from '../clients/index.ts';
import { type Agent, asUpstream, type ChatGateway } from './index.ts';

function createCounting() {
  let answers = 0;
  return {
    name: 'counting',
    async *prompt({ text }: { text: string }) {
      yield { type: 'text-delta', delta: `Answer ${++answers} to ${text}` } as const;
    },
  };
}

const HOSTS: [string, () => ChatGateway][] = [
  ['in a session', () => startHosted({ sessions: { agent: createCounting } }).gateway],
  ['without a session', () => createTestGateway(asUpstream(createCounting()))],
];
const again = chatBody('one', { trigger: 'regenerate-message' });

describe.each(HOSTS)('a regenerate that is sent again, %s,', (_, open) => {
  async function start() {
    const carl = createUser(open(), 'carl');
    const send = async (body: object, attempt?: string, tries = 0) => {
      const headers = {
        'x-sabir-resume': `${tries}`,
        ...(attempt !== undefined && { 'x-sabir-attempt': attempt }),
      };
      const response = await carl.post(body, { headers });
      const sse = openSse(response);
      await sse.ended;
      return { turn: turnOf(response), text: sse.text() };
    };
    await send(chatBody('one'), 'first');
    return send;
  }

  it('attaches to its own attempt, where that has arrived', async () => {
    const send = await start();
    const turns = [];
    for (const attempt of ['a', 'b', 'c']) turns.push(await send(again, attempt));
    expect(turns.map(({ text }) => text)).toEqual([2, 3, 4].map((n) => `Answer ${n} to one`));
    expect(await send(again, 'c', 1)).toEqual(turns[2]);
    expect(await send(again, 'c', 2)).toEqual(turns[2]);
  });

  it('begins, where its attempt has not arrived', async () => {
    const send = await start();
    await send(again, 'a');
    expect((await send(again, 'b', 1)).text).toBe('Answer 3 to one');
    expect((await send(again, 'b', 2)).text).toBe('Answer 3 to one');
  });

  it('attaches to the latest attempt, where the client does not name its attempts', async () => {
    const send = await start();
    for (let times = 0; times < 3; times++) await send(again);
    expect((await send(again, undefined, 1)).text).toBe('Answer 4 to one');
  });
});

const LED_HOSTS: [string, (agent: Agent) => ChatGateway][] = [
  ['in a session', (agent) => startHosted({ sessions: { agent: () => agent } }).gateway],
  ['without a session', (agent) => createTestGateway(asUpstream(agent))],
];

describe.each(LED_HOSTS)('another attempt while one runs, %s,', (_, open) => {
  async function start() {
    const agent = createLedAgent();
    const gateway = open(agent);
    const carl = createUser(gateway, 'carl');
    const send = (body: object, attempt: string, tries = 0) =>
      carl.post(body, { headers: { 'x-sabir-resume': `${tries}`, 'x-sabir-attempt': attempt } });
    const first = openSse(await send(chatBody('one'), 'first'));
    const { text, end } = await agent.run();
    text('First');
    end();
    await first.ended;
    return { agent, gateway, send };
  }

  const edited = {
    ...chatBody('uno'),
    messageId: 'u-one',
    messages: [{ id: 'u-one', role: 'user', parts: [{ type: 'text', text: 'uno' }] }],
  };
  it.each([
    ['a regenerate', again, 0],
    ['an edit', edited, 0],
    ['a regenerate whose first copy was lost', again, 1],
    ['an edit whose first copy was lost', edited, 1],
  ])('stops it and is prompted: %s', async (_, body, tries) => {
    const { agent, send } = await start();
    const a = await send(body, 'a');
    const running = await agent.run(1);
    running.text('Half');
    const b = await send(body, 'b', tries);
    expect(turnOf(b)).not.toBe(turnOf(a));
    expect(running.prompt.signal.aborted).toBe(true);
    const next = await agent.run(2);
    // Both are sent again, and stop nothing.
    const [earlier, later] = [await send(body, 'a', 1), await send(body, 'b', 2)];
    expect([earlier, later].map(turnOf)).toEqual([a, b].map(turnOf));
    expect(next.prompt.signal.aborted).toBe(false);
    next.text('Whole');
    next.end();
    const sse = openSse(b);
    await sse.ended;
    expect(sse.text()).toBe('Whole');
    expect(agent.runs).toHaveLength(3);
  });

  it('is prompted for a page that stops and regenerates again, with SabirChatTransport', async () => {
    const { agent, gateway } = await start();
    const fetch = (async (url: string, init?: RequestInit) => {
      const headers = new Headers(init?.headers);
      headers.set('authorization', 'Bearer carl');
      return gateway.fetch(new Request(url, { ...init, headers }));
    }) as typeof globalThis.fetch;
    const transport = new SabirChatTransport({ api: `${ORIGIN}/api/sessions/s1/chat`, fetch });
    const { chat } = await createClient('ai@7', transport as never);
    const sent = chat.sendMessage({ text: 'one' });
    (await agent.run(1)).end();
    await sent;
    const stopped = chat.regenerate();
    (await agent.run(2)).text('Half');
    await eventually(() => saysOf(chat.messages).at(-1) === 'Half', 'half of the answer');
    await chat.stop();
    await stopped;
    const asking = chat.regenerate();
    const next = await agent.run(3);
    next.text('Whole');
    next.end();
    await asking;
    expect(saysOf(chat.messages)).toEqual(['one', 'Whole']);
  });
});

describe.each(['request', 'response'] as const)(
  'a client of ours that loses the %s of a regenerate',
  (lost) => {
    /** Loses what the test says, once. */
    function loseOne(gateway: ChatGateway) {
      let isDue = false;
      const fetch = async (url: RequestInfo | URL, init?: RequestInit) => {
        const isLost = isDue && init?.method === 'POST';
        if (isLost) isDue = false;
        const headers = new Headers(init?.headers);
        headers.set('authorization', 'Bearer carl');
        if (isLost && lost === 'request') throw new TypeError('fetch failed');
        const response = await gateway.fetch(new Request(url as string, { ...init, headers }));
        if (!isLost) return response;
        await openSse(response).ended;
        throw new TypeError('fetch failed');
      };
      return {
        fetch: fetch as typeof globalThis.fetch,
        lose: () => {
          isDue = true;
        },
      };
    }

    it.each(HOSTS)(
      'shows the answer that was asked for, with SabirChatTransport, %s',
      async (_, open) => {
        const { fetch, lose } = loseOne(open());
        const api = `${ORIGIN}/api/sessions/s1/chat`;
        const transport = new SabirChatTransport({ api, fetch, backoff: { initialMs: 1 } });
        const { chat } = await createClient('ai@7', transport as never);
        await chat.sendMessage({ text: 'one' });
        await chat.regenerate();
        lose();
        await chat.regenerate();
        expect(saysOf(chat.messages)).toEqual(['one', 'Answer 3 to one']);
      },
    );

    it('shows the answer that was asked for, with ChatStream', async () => {
      const { fetch, lose } = loseOne(createTestGateway(asUpstream(createCounting())));
      const chat = new ChatStream({ api: `${ORIGIN}/api/chat`, fetch });
      await chat.sendMessage('one');
      await chat.regenerate();
      lose();
      await chat.regenerate();
      expect(saysOf(chat.getSnapshot().messages)).toEqual(['one', 'Answer 3 to one']);
    });
  },
);
