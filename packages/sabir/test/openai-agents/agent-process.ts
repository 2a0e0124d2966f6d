/**
 * An agent that asks before it deletes a file, run by the real SDK with a scripted model, behind a
 * gateway: one process, whose store may outlive it.
 */
import type { Chunk } from '../../src/core/chunks.ts';
import type { UIMessage } from '../../src/core/message.ts';
import { asUpstream, type ChatGatewayOptions } from '../../src/gateway/index.ts';
import {
  type AgentsSdkAgentOptions,
  agentsSdkAgent,
  type PendingRuns,
} from '../../src/sources/openai-agents/index.ts';
import { createTestGateway, createUser, eventually, type SseReader } from '../gateway-client.ts';
import { removingTool } from './removing-tool.ts';
import type { Output } from './responses-script.ts';
import { type Script, scriptedModel } from './scripted-model.ts';
import type { Sdk } from './sdks.ts';

type Process = Partial<AgentsSdkAgentOptions> & {
  script: Script;
  store?: Map<string, string>;
  gateway?: Partial<ChatGatewayOptions>;
};

/** Only text goes in, as into a table: what is found there is a copy. */
function textStore(store: Map<string, string>): PendingRuns {
  return {
    get: async (key) => JSON.parse(store.get(key) ?? 'null') ?? undefined,
    set: async (key, run) => void store.set(key, JSON.stringify(run)),
    delete: async (key) => store.delete(key),
  };
}

/** One process: an agent with a tool that asks first, its model, and a gateway in front of it. */
export function start(sdk: Sdk, { script, store = new Map(), gateway = {}, ...options }: Process) {
  const { Agent, run, RunState } = sdk;
  const model = scriptedModel(sdk, script);
  const inputs: unknown[] = [];
  const ask = model.getStreamedResponse.bind(model);
  model.getStreamedResponse = (request) => {
    inputs.push(structuredClone(request.input));
    return ask(request);
  };
  const deleted: string[] = [];
  const deleteFile = removingTool(sdk, deleted, 'delete_file');
  const agent = new Agent({ name: 'Clerk', tools: [deleteFile], model });
  const pending = textStore(store);
  const clerk = agentsSdkAgent({ agent, run, RunState, pending, ...options });
  const finished: { message: UIMessage; outcome: string }[] = [];
  const server = createTestGateway(asUpstream(clerk), {
    onFinish: ({ message, outcome }) => void finished.push({ message, outcome: outcome.status }),
    ...gateway,
  });
  const [carl, olga] = [createUser(server, 'carl'), createUser(server, 'olga')];
  const ended = () => eventually(() => finished.at(-1), 'the end of a turn');
  return { gateway: server, carl, olga, inputs, deleted, finished, ended, store, clerk };
}

export const SEVEN = { query: 'aiSdk=7', headers: { 'x-sabir-detach': '1' } };
export const call = (path: string): Output => ({
  call: 'delete_file',
  input: { path },
  callId: path,
});
export const say = (text: string) => ({ outputs: [{ text }] });
export const ASKS: Script = [{ outputs: [{ text: 'One moment. ' }, call('a')] }, say('All done.')];

export const questionsOf = (chunks: Chunk[]) =>
  chunks.flatMap((chunk) => (chunk.type === 'data-question' ? [chunk.data as Question] : []));
type Question = { questionId: string; status: string; answer?: unknown; text: string };
export const openQuestion = (sse: SseReader) =>
  sse.until(() => questionsOf(sse.chunks()).findLast(({ status }) => status === 'open'));
export const toolsOf = ({ parts }: UIMessage) =>
  parts.flatMap((part) => ('toolCallId' in part ? [part] : []));
export const textOf = ({ parts }: UIMessage) =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
