/**
 * A model that says what it was told to, behind the API that OpenCode speaks to custom providers:
 * chat completions, streamed. Which answer is given depends on the request alone, so that several
 * conversations can go on at once: the script is found by the last thing a person said, and the
 * answer by how often the model has spoken since.
 */
import { createServer, type ServerResponse } from 'node:http';
import { listen } from './listen.ts';

export type ModelAnswer = {
  reasoning?: string[];
  text?: string[];
  calls?: { id: string; name: string; input: unknown }[];
  /** Why it stops. Default: for its calls, else because it is done. */
  finish?: 'stop' | 'length' | 'content_filter' | 'tool_calls';
  /** Says nothing but that it cannot, with this status. */
  refuse?: { status: number; message: string };
  /** Breaks off instead of ending. */
  isCut?: boolean;
  /** Says all this and does not end, until `release` is called or whoever asked has gone. */
  isHeld?: boolean;
  /** What it says after it was released. */
  rest?: string[];
};

type ChatMessage = { role: string; content?: unknown };
export type ModelRequest = { model: string; messages: ChatMessage[]; tools?: unknown[] };
export type Scripts = {
  [prompt: string]: (ModelAnswer | ((request: ModelRequest) => ModelAnswer))[];
};

export type ScriptedModel = {
  /** What a provider's `baseURL` is to be. */
  url: string;
  /** Everything that was asked, titles included. */
  requests: ModelRequest[];
  /** By what a person says: a script is taken if its key is in that. */
  scripts: Scripts;
  /** Lets everything end that is held. */
  release(): void;
  close(): Promise<void>;
};

/** Said where the script has nothing. */
const NOTHING_SCRIPTED: ModelAnswer = { text: ['Nothing was scripted for this.'] };
const TITLE = 'A scripted title';
const USAGE = {
  prompt_tokens: 100,
  completion_tokens: 20,
  total_tokens: 120,
  prompt_tokens_details: { cached_tokens: 40 },
  completion_tokens_details: { reasoning_tokens: 5 },
};

export async function startScriptedModel(scripts: Scripts = {}): Promise<ScriptedModel> {
  const requests: ModelRequest[] = [];
  const held = new Set<() => void>();
  const server = createServer(async (incoming, response) => {
    let body = '';
    for await (const piece of incoming) body += piece;
    const request = JSON.parse(body) as ModelRequest;
    requests.push(request);
    const answer = answerTo(request, scripts);
    if (answer.refuse) {
      const { status, message } = answer.refuse;
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message, type: 'scripted_error' } }));
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const delta of deltasOf(answer)) {
      sendChunk(response, request, { delta, finish_reason: null });
    }
    if (answer.isHeld) await released(response, held);
    for (const content of answer.rest ?? []) {
      sendChunk(response, request, { delta: { content }, finish_reason: null });
    }
    if (answer.isCut) {
      response.destroy();
      return;
    }
    const finish = answer.finish ?? (answer.calls ? 'tool_calls' : 'stop');
    sendChunk(response, request, { delta: {}, finish_reason: finish });
    response.end('data: [DONE]\n\n');
  });
  const { url, close } = await listen(server);
  return {
    url: `${url}/v1`,
    requests,
    scripts,
    release() {
      for (const letGo of held) letGo();
    },
    close,
  };
}

function answerTo(request: ModelRequest, scripts: Scripts): ModelAnswer {
  const { messages } = request;
  if (isAboutTitle(messages)) return { text: [TITLE] };
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const said = toText(messages[at]?.content);
  const key = Object.keys(scripts).find((prompt) => said.includes(prompt));
  const spoken = messages.slice(at).filter(({ role }) => role === 'assistant').length;
  const scripted = key === undefined ? undefined : scripts[key]?.[spoken];
  if (typeof scripted === 'function') return scripted(request);
  return scripted ?? NOTHING_SCRIPTED;
}

/** OpenCode has each new session named by the model. */
function isAboutTitle([first]: ChatMessage[]): boolean {
  return first?.role === 'system' && toText(first.content).includes('title generator');
}

export function toText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { text?: string }) => part.text ?? '').join('\n');
}

function deltasOf({ reasoning = [], text = [], calls = [] }: ModelAnswer): object[] {
  return [
    { role: 'assistant', content: '' },
    ...reasoning.map((delta) => ({ reasoning_content: delta })),
    ...text.map((delta) => ({ content: delta })),
    ...calls.flatMap(({ id, name, input }, index) => {
      const written = JSON.stringify(input);
      const half = Math.ceil(written.length / 2);
      const begin = { index, id, type: 'function', function: { name, arguments: '' } };
      const pieces = [written.slice(0, half), written.slice(half)];
      return [
        { tool_calls: [begin] },
        ...pieces.map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
      ];
    }),
  ];
}

function sendChunk(
  response: ServerResponse,
  { model }: ModelRequest,
  choice: { delta: object; finish_reason: string | null },
): void {
  const chunk = {
    id: 'scripted',
    object: 'chat.completion.chunk',
    created: 0,
    model,
    choices: [{ index: 0, ...choice }],
    ...(choice.finish_reason && { usage: USAGE }),
  };
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
}

function released(response: ServerResponse, held: Set<() => void>): Promise<void> {
  return new Promise((resolve) => {
    const letGo = () => {
      held.delete(letGo);
      resolve();
    };
    held.add(letGo);
    response.once('close', letGo);
  });
}
