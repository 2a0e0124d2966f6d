/**
 * The other two ends of `leak-run.ts`, in a process of their own, so that what they remember is not
 * taken for what the gateway holds: the agents' server, and the clients.
 */
import { Agent, request } from 'node:http';
import { defaultScript, say, sayWhen } from './agent-ops-script.ts';
import { startAgentOpsServer } from './agent-ops-server.ts';

export type PeerOrder = { turns: number; atOnce: number } | 'rest' | 'leave';
export type PeerReport = { agentsUrl: string } | { done: true } | { failed: string };

const TURNS_PER_SESSION = 10;
const words = Array.from({ length: 30 }, (_, n) => `word ${n} `);

const report = (said: PeerReport) => process.send?.(said);
const url = process.argv[2] ?? '';
const agents = await startAgentOpsServer({
  script: (text) => {
    if (text.startsWith('[')) return defaultScript(text);
    return text.startsWith('Wait')
      ? sayWhen(new Promise(() => undefined), 'A word')
      : say(...words);
  },
});
const http = new Agent({ keepAlive: true });
let turns = 0;

/** One message, and its answer to the end; every tenth leaves in the middle of it. */
function chat(n = turns++): Promise<void> {
  const isLeaving = n % 10 === 9;
  const kind = isLeaving ? 'Wait' : n % 3 === 0 ? '[rfc-tool]' : 'Say something';
  const text = `${kind} ${n}`;
  const body = JSON.stringify({
    id: `chat-${n}`,
    messages: [{ id: `message-${n}`, role: 'user', parts: [{ type: 'text', text }] }],
    trigger: 'submit-message',
  });
  const session = isLeaving ? `left-${n}` : `session-${Math.floor(n / TURNS_PER_SESSION)}`;
  return new Promise((resolve, reject) => {
    const sent = request(
      `${url}/api/sessions/${session}/chat`,
      { agent: http, method: 'POST', headers: { 'content-type': 'application/json' } },
      (response) => {
        let answer = '';
        response.setEncoding('utf8');
        response.on('data', (piece) => {
          answer += piece;
          if (!isLeaving || !answer.includes('A word')) return;
          response.destroy();
          resolve();
        });
        response.on('error', reject);
        response.on('end', () => {
          const isWhole = answer.endsWith('data: [DONE]\n\n') && !answer.includes('"error"');
          if (isWhole) resolve();
          else reject(new Error(`turn ${n}: ${response.statusCode} ${answer.slice(-500)}`));
        });
      },
    );
    sent.on('error', (error: NodeJS.ErrnoException) => {
      // A kept connection may be closed by the server in the moment it is used again.
      if (sent.reusedSocket && error.code === 'ECONNRESET') resolve(chat(n));
      else reject(error);
    });
    sent.end(body);
  });
}

async function run({ turns: count, atOnce }: { turns: number; atOnce: number }): Promise<void> {
  for (let done = 0; done < count; done += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, () => chat()));
  }
}

process.on('message', async (order: PeerOrder) => {
  try {
    if (order === 'rest') http.destroy();
    else if (order === 'leave') {
      await agents.close();
      process.disconnect();
      return;
    } else await run(order);
    report({ done: true });
  } catch (error) {
    report({ failed: String(error) });
  }
});
report({ agentsUrl: agents.url });
