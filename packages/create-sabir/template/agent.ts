import { setTimeout } from 'node:timers/promises';
import type { AgentFunction } from 'sabir/session';

/** The agent. What it yields is the answer; replace it with your own. */
export const agent: AgentFunction = async function* ({ text, signal }) {
  const call = { toolCallId: 'count', toolName: 'count_words', providerExecuted: true };
  yield { type: 'tool-input-available', ...call, input: { text } };
  await setTimeout(500, undefined, { signal });
  const words = text.split(/\s+/).filter(Boolean).length;
  yield { type: 'tool-output-available', ...call, output: { words } };
  const answer = `That is ${words} ${words === 1 ? 'word' : 'words'}. I am the agent in agent.ts: make me yours.`;
  for (const word of answer.split(/(?<= )/)) {
    yield { type: 'text-delta', delta: word };
    await setTimeout(60, undefined, { signal });
  }
};
