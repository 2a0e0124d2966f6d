/**
 * One agent of the flow: lets a model speak, runs the tools it asks for, and lets it speak
 * again, until it has nothing more to ask. Everything that happens is emitted as it happens.
 */
import type { AgentName, Model, ModelMessage, PersonRequest, ToolCall } from './model.ts';
import type { NodeContext } from './node-context.ts';
import type { Pace } from './pace.ts';
import type { Tool } from './tools.ts';

export type AgentTask = {
  agent: AgentName;
  person: PersonRequest;
  system: string;
  prompt: string;
  tools?: readonly Tool[];
};

/** A model that keeps calling tools is going in circles; better a short answer than none. */
const MAX_TURNS = 5;

export async function runAgent(
  context: NodeContext,
  model: Model,
  pace: Pace,
  task: AgentTask,
): Promise<string> {
  const { emit, signal } = context;
  const startedAt = Date.now();
  const tools = task.tools ?? [];
  const messages: ModelMessage[] = [
    ...task.person.history.map(({ role, text }): ModelMessage => ({ role, text })),
    { role: 'user', text: task.prompt },
  ];
  const spent = { inputTokens: 0, outputTokens: 0, costUsd: undefined as number | undefined };
  const said: string[] = [];
  let turns = 0;

  emit({ type: 'agent:start', sessionId: context.runId, prompt: task.prompt });

  while (turns < MAX_TURNS) {
    turns += 1;
    const block = createBlock(emit);
    const calls: ToolCall[] = [];
    let text = '';
    const lastTurn = turns === MAX_TURNS;
    const request = { ...task, messages, tools: lastTurn ? [] : tools, signal };
    for await (const event of model.stream(request)) {
      signal.throwIfAborted();
      if (event.type === 'thinking') block.append('thinking', event.text);
      else if (event.type === 'text') {
        text += event.text;
        block.append('text', event.text);
      } else if (event.type === 'tool-call') {
        calls.push({ id: event.id, name: event.name, input: event.input });
      } else {
        spent.inputTokens += event.inputTokens;
        spent.outputTokens += event.outputTokens;
        if (event.costUsd !== undefined) spent.costUsd = (spent.costUsd ?? 0) + event.costUsd;
      }
    }
    block.close();
    if (text) said.push(text);
    messages.push({ role: 'assistant', text, toolCalls: calls });
    if (calls.length === 0) break;
    for (const call of calls) {
      const answer = await runTool(context, pace, tools, call);
      messages.push({ role: 'tool', toolCallId: call.id, text: answer });
    }
  }

  const result = said.join('\n\n');
  emit({
    type: 'agent:complete',
    result,
    usage: { inputTokens: spent.inputTokens, outputTokens: spent.outputTokens },
    ...(spent.costUsd === undefined ? {} : { totalCostUsd: spent.costUsd }),
    durationMs: Date.now() - startedAt,
    numTurns: turns,
  });
  return result;
}

/** Emits the call first and its answer later, so that a person sees the tool while it works. */
async function runTool(
  { emit, signal }: NodeContext,
  pace: Pace,
  tools: readonly Tool[],
  call: ToolCall,
): Promise<string> {
  const event = { type: 'agent:tool', toolName: call.name, toolInput: call.input } as const;
  const startedAt = Date.now();
  emit(event);
  try {
    const tool = tools.find(({ name }) => name === call.name);
    if (!tool) throw new Error(`There is no tool called “${call.name}”.`);
    const toolOutput = await tool.run(call.input, { pace, signal });
    emit({ ...event, toolOutput, durationMs: Date.now() - startedAt });
    return JSON.stringify(toolOutput);
  } catch (error) {
    signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    emit({ ...event, error: message, durationMs: Date.now() - startedAt });
    return JSON.stringify({ error: message });
  }
}

/** Keeps thinking and text apart: each block of one kind ends with its full content. */
function createBlock(emit: NodeContext['emit']) {
  let kind: 'thinking' | 'text' | undefined;
  let content = '';
  const close = () => {
    if (kind) emit({ type: `agent:${kind}`, content });
    kind = undefined;
    content = '';
  };
  return {
    close,
    append(next: 'thinking' | 'text', delta: string) {
      if (!delta) return;
      if (next !== kind) close();
      kind = next;
      content += delta;
      emit({ type: `agent:${next}:delta`, content: delta });
    },
  };
}
