/** The agent of the matrix: what it answers depends on the first word of the prompt. */
import type { Chunk } from '../../src/core/chunks.ts';
import type { Agent, AgentPrompt } from '../../src/sessions/index.ts';
import type { LooseDelta } from '../../src/turns/agent.ts';

type Said = AsyncGenerator<Chunk | LooseDelta>;

const WORDS = Array.from({ length: 12 }, (_, i) => `word-${i} `);
/** What `slow` says before it waits for `release`, and in all. */
export const FIRST_HALF = WORDS.slice(0, 6).join('');
export const WHOLE = WORDS.join('');

export function createMatrixAgent() {
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const counts = new Map<string, number>();
  /** Sessions that have had their slow first answer. */
  const begun = new Set<string>();

  function gateOf(sessionId: string): PromiseWithResolvers<void> {
    const gate = gates.get(sessionId) ?? Promise.withResolvers<void>();
    gates.set(sessionId, gate);
    return gate;
  }

  async function* slow({ sessionId, signal }: AgentPrompt): Said {
    const gate = gateOf(sessionId);
    for (const delta of WORDS.slice(0, 6)) yield { type: 'text-delta', delta };
    const stopped = new Promise<void>((resolve) =>
      signal.addEventListener('abort', () => resolve()),
    );
    await Promise.race([gate.promise, stopped]);
    if (signal.aborted) return;
    for (const delta of WORDS.slice(6)) yield { type: 'text-delta', delta };
  }

  async function* tool(toolName: string, result: object): Said {
    const call = { toolCallId: `call-${toolName}`, providerExecuted: true };
    yield { type: 'start-step' };
    yield { type: 'text-delta', delta: 'Let me look. ' };
    yield { type: 'tool-input-start', ...call, toolName };
    yield { type: 'tool-input-available', ...call, toolName, input: { q: 'harbour' } };
    yield { ...call, ...result } as Chunk;
    yield { type: 'finish-step' };
    yield { type: 'start-step' };
    yield { type: 'text-delta', delta: 'That is all.' };
  }

  async function* pay({ ask }: AgentPrompt): Said {
    const call = { toolCallId: 'call-pay', providerExecuted: true };
    yield { type: 'start-step' };
    yield { type: 'tool-input-available', ...call, toolName: 'pay', input: { amount: 3 } };
    const { toolCallId: callId } = call;
    const answer = await ask({ text: 'May I pay?', callId });
    const isApproved = answer.status === 'answered' && isYes(answer.answer);
    yield isApproved
      ? { type: 'tool-output-available', ...call, output: { paid: 3 } }
      : ({ type: 'tool-output-denied', toolCallId: callId } as Chunk);
    yield { type: 'finish-step' };
    yield { type: 'start-step' };
    yield { type: 'text-delta', delta: isApproved ? 'Paid.' : 'Not paid.' };
  }

  async function* echo({ sessionId, text }: AgentPrompt): Said {
    const count = (counts.get(sessionId) ?? 0) + 1;
    counts.set(sessionId, count);
    yield { type: 'text-delta', delta: `Answer ${count} to ${text.trim()}.` };
  }

  const agent: Agent = {
    name: 'matrix',
    prompt(prompt) {
      if (prompt.text === 'slow') return slow(prompt);
      if (prompt.text === 'slow first' && !begun.has(prompt.sessionId)) {
        begun.add(prompt.sessionId);
        return slow(prompt);
      }
      if (prompt.text === 'pay') return pay(prompt);
      const found = { type: 'tool-output-available', output: { hits: 3 } };
      if (prompt.text === 'tool') return tool('search', found);
      const missing = { type: 'tool-output-error', errorText: 'File not found' };
      if (prompt.text === 'broken tool') return tool('read', missing);
      return echo(prompt);
    },
  };
  return {
    agent,
    /** Lets the slow answers of a session go on to their end. */
    release: (sessionId: string) => gateOf(sessionId).resolve(),
  };
}

function isYes(answer: unknown): boolean {
  return answer === true || (answer as { approved?: unknown } | null)?.approved === true;
}
