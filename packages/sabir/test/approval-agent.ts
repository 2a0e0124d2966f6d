/**
 * An agent that asks before it uses its tools, and real clients that answer it over HTTP. What it
 * waits for it keeps in a store, as one does whose process may end meanwhile.
 */
import { onTestFinished } from 'vitest';
import type { Chunk } from '../src/core/chunks.ts';
import type { AnyToolPart } from '../src/core/fold-tools.ts';
import type { UIMessage } from '../src/core/message.ts';
import { type AgentPrompt, asUpstream, type ChatGateway } from '../src/gateway/index.ts';
import { serve } from '../src/platforms/node/serve.ts';
import type { Upstream } from '../src/turns/upstream.ts';
import { type ClientName, createClient, httpTransport, type RealClient } from './real-clients.ts';

type Verdict = { approved: boolean; reason?: string };
type Kept = {
  messageId: string;
  userId?: string;
  said: Chunk[];
  step: number;
  verdicts: string[];
};

export type ApprovalStore = Map<string, Kept>;

type AgentOptions = {
  /** The ids of the approvals that are asked for in each step. */
  steps: string[][];
  /** What is in each question beside the usual. */
  question?: object;
  store?: ApprovalStore;
  /** Does not keep who asked. */
  isForgetful?: boolean;
  /** Runs before what has been said is said again. */
  beforeTelling?: () => Promise<unknown>;
};

const callOf = (approvalId: string) => `call-${approvalId}`;

function askFor(approvalId: string, question: object): Chunk[] {
  const toolCallId = callOf(approvalId);
  const data = { questionId: approvalId, text: `Pay for ${approvalId}?`, toolCallId };
  return [
    {
      type: 'tool-input-available',
      toolCallId,
      toolName: 'pay',
      input: { approvalId },
      providerExecuted: true,
    } as Chunk,
    { type: 'data-question', id: approvalId, data: { ...data, status: 'open', ...question } },
    { type: 'tool-approval-request', approvalId, toolCallId },
  ];
}

function settle(approvalId: string, { approved }: Verdict): Chunk {
  const toolCallId = callOf(approvalId);
  if (!approved) return { type: 'tool-output-denied', toolCallId };
  return {
    type: 'tool-output-available',
    toolCallId,
    output: `paid ${approvalId}`,
    providerExecuted: true,
  } as Chunk;
}

function toVerdict(answer: unknown): Verdict {
  if (typeof answer === 'boolean') return { approved: answer };
  return answer as Verdict;
}

export function createApprovalAgent(options: AgentOptions) {
  const { steps, question = {}, store = new Map(), isForgetful = false, beforeTelling } = options;
  const heard: Record<string, unknown> = {};
  const turns: AgentPrompt[] = [];

  async function* run(turn: AgentPrompt): AsyncGenerator<Chunk> {
    turns.push(turn);
    const { chatKey, messageId, isRestored } = turn;
    const found = isRestored ? store.get(chatKey) : undefined;
    const who = isForgetful ? {} : { userId: turn.user.id };
    const kept = found ?? { messageId, ...who, said: [], step: 0, verdicts: [] };
    store.set(chatKey, kept);
    if (found) await beforeTelling?.();
    yield* [...kept.said];
    let isAsked = found !== undefined;
    for (; kept.step < steps.length; kept.step++) {
      const ids = steps[kept.step] as string[];
      if (!isAsked) {
        const asking: Chunk[] = ids.flatMap((id) => askFor(id, question));
        const step: Chunk[] = [{ type: 'start-step' }, ...asking, { type: 'finish-step' }];
        kept.said.push(...step);
        yield* step;
      }
      isAsked = false;
      const told: Chunk[] = [];
      for (const id of ids) {
        try {
          heard[id] = await turn.answer(id);
        } catch (error) {
          // A process that ends is no reason to forget what waits.
          if ((error as { code?: string }).code === 'question-expired') store.delete(chatKey);
          throw error;
        }
        const verdict = toVerdict(heard[id]);
        kept.verdicts.push(`${id} ${verdict.approved}${verdict.reason ?? ''}`);
        told.push(settle(id, verdict));
      }
      kept.said.push(...told);
      yield* told;
    }
    store.delete(chatKey);
    yield { type: 'start-step' };
    yield { type: 'text-start', id: 't' };
    yield { type: 'text-delta', id: 't', delta: `Done: ${kept.verdicts.join(', ')}.` };
  }

  const upstream: Upstream = asUpstream({
    name: 'approvals',
    concurrent: true,
    prompt: run,
    restore: ({ chatKey }) => store.get(chatKey),
  });
  return { upstream, heard, turns, store };
}

export type ApprovalClient = RealClient & {
  /** How often something was sent. */
  posts(): number;
  statuses: number[];
  approve(id: string, approved?: boolean, reason?: string): Promise<void>;
  tool(id: string): AnyToolPart | undefined;
  /** The tool calls of the last answer. */
  tools(): AnyToolPart[];
  text(): string;
};

const COMPLETE: Partial<Record<ClientName, () => Promise<unknown>>> = {
  'ai@6.0.9': async () =>
    (await import('ai-v6-0-9')).lastAssistantMessageIsCompleteWithApprovalResponses,
  'ai@6': async () => (await import('ai-v6')).lastAssistantMessageIsCompleteWithApprovalResponses,
  'ai@7': async () => (await import('ai-v7')).lastAssistantMessageIsCompleteWithApprovalResponses,
};

/** A gateway behind a port of its own, closed when its test is over. */
export async function listen(gateway: ChatGateway): Promise<string> {
  const server = await serve({ fetch: gateway.fetch });
  onTestFinished(() => server.close());
  return server.url;
}

/** An unmodified client of that release in chat `c1` of session `s1`, which says its major unless a test turns that off. */
export async function createApprovalClient(
  name: ClientName,
  url: () => string,
  { user = 'carl', messages = [] as UIMessage[], saysMajor = true, init = {} } = {},
): Promise<ApprovalClient> {
  let posts = 0;
  const statuses: number[] = [];
  const transport = await httpTransport(name, async (path, init) => {
    const to = path.replace('http://test.invalid/api/chat', `${url()}/api/sessions/s1/chat`);
    const headers = new Headers(init.headers);
    headers.set('authorization', `Bearer ${user}`);
    if (saysMajor) headers.set('x-sabir-ai-sdk', name.charAt(3));
    if (init.method === 'POST' && ++posts > 20) throw new Error('It sends for ever.');
    const response = await fetch(to, { ...init, headers });
    statuses.push(response.status);
    return response;
  });
  const sendAutomaticallyWhen = await COMPLETE[name]?.();
  const client = await createClient(name, transport, {
    id: 'c1',
    ...(sendAutomaticallyWhen !== undefined && { sendAutomaticallyWhen }),
    ...init,
  });
  const { chat } = client;
  if (messages.length > 0) chat.messages = messages;
  const lastParts = () => (client.result().message?.parts ?? []) as AnyToolPart[];
  return {
    ...client,
    posts: () => posts,
    statuses,
    approve: (id, approved = true, reason) =>
      (chat as unknown as { addToolApprovalResponse(given: object): Promise<void> })
        // As a page would: without a reason there is no such field.
        .addToolApprovalResponse({ id, approved, ...(reason !== undefined && { reason }) }),
    tools: () => lastParts().filter(({ toolCallId }) => toolCallId !== undefined),
    tool: (id) => lastParts().find(({ toolCallId }) => toolCallId === callOf(id)),
    text: () => (lastParts() as { text?: string }[]).reduce((all, { text = '' }) => all + text, ''),
  };
}
