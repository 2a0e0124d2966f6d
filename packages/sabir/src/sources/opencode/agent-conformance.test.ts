/** The contract of agents, kept by the real OpenCode. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { describeAgent } from '../../../test/agent-conformance.ts';
import { startClosingProxy } from '../../../test/opencode/closing-proxy.ts';
import {
  createOpenCodeHome,
  launchHome,
  type OpenCodeHome,
} from '../../../test/opencode/opencode-options.ts';
import {
  type ModelRequest,
  type ScriptedModel,
  startScriptedModel,
  toText,
} from '../../../test/opencode/scripted-model.ts';
import type { Chunk } from '../../core/chunks.ts';
import type { OpenCodeProcess } from '../../platforms/node/opencode-server.ts';
import type { Agent, AgentPrompt } from '../../turns/agent.ts';
import { createOpenCodeAgent } from './agent.ts';

const lookup = (filePath: string) => ({
  calls: [{ id: 'call-1', name: 'read', input: { filePath } }],
});
const options = ['Yes', 'No'].map((label) => ({ label, description: label }));
const question = { question: 'Shall I?', header: 'Shall I', options };

function lastResult({ messages }: ModelRequest): string {
  return toText(messages.findLast(({ role }) => role === 'tool')?.content);
}

let model: ScriptedModel;
let home: OpenCodeHome;
let server: OpenCodeProcess;

beforeAll(async () => {
  model = await startScriptedModel({
    text: [{ text: ['Hello, ', 'world!'] }],
    toolerror: [lookup('missing.txt'), { text: ['It is not there.'] }],
    tool: [lookup('answer.txt'), (request) => ({ text: [`It is ${lastResult(request)}.`] })],
    ask: [
      { calls: [{ id: 'call-1', name: 'question', input: { questions: [question] } }] },
      (request) => ({ text: [`Answered: ${/"="(\w+)"/.exec(lastResult(request))?.[1]}`] }),
    ],
    fail: [{ refuse: { status: 400, message: 'It broke.' } }],
    slow: [{ text: ['Half '], isHeld: true }],
  });
  home = createOpenCodeHome(model);
  writeFileSync(join(home.directory, 'answer.txt'), '42');
  server = await launchHome(home);
}, 180_000);

afterAll(async () => {
  await server?.stop();
  await model?.close();
  home?.remove();
});

/** OpenCode has no tool of the name that the suite wants, and to be given one it needs a network. */
function withLookup(agent: Agent): Agent {
  async function* prompt(given: AgentPrompt): AsyncGenerator<Chunk> {
    for await (const chunk of (await agent.prompt(given)) as AsyncIterable<Chunk>) {
      const isRead = 'toolName' in chunk && chunk.toolName === 'read';
      yield isRead ? { ...chunk, toolName: 'lookup' } : chunk;
    }
  }
  return { ...agent, prompt };
}

describeAgent('OpenCode', async () => {
  const { url, close } = await startClosingProxy(server.url);
  return { agent: withLookup(createOpenCodeAgent({ url, headers: server.headers })), close };
});
