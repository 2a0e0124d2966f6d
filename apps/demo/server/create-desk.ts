import { RunState } from '@openai/agents';
import type { Agent, AgentPrompt } from 'sabir/gateway';
import { agentsSdkAgent } from 'sabir/openai-agents';
import { createDeskAgents, DESK_TOOLS, type DeskContext } from '../desk/agents.ts';
import { createRegister } from '../desk/bookings.ts';
import { ScriptedFailure } from '../desk/write-response.ts';
import { createPace } from '../flow/pace.ts';
import type { DeskModel } from './choose-model.ts';
import { toExplanation } from './openai-compatible-model.ts';

/** How long a person may think about an approval. */
const ANSWER_MS = 10 * 60_000;

/** What a turn came to, for whoever counts. */
type Counts = { active: number; finished: number; failed: number; stopped: number };
type DeskOptions = { model: DeskModel; speed?: number; runs: Counts; answerMs?: number };

/**
 * The harbour desk: agents of the OpenAI Agents SDK as one agent. A run that needs a person's approval
 * asks, waits, and goes on in the same message.
 */
export function createDesk({ model, speed = 1, runs, answerMs = ANSWER_MS }: DeskOptions): Agent {
  const register = createRegister();
  const { canSearchWeb } = model;
  const pace = model.isScripted ? createPace(speed) : undefined;
  const clerks = createDeskAgents({ register, canSearchWeb, ...(pace && { pace }) });

  const desk = agentsSdkAgent({
    agent: clerks,
    RunState,
    run: (first: typeof clerks, input: never, options: { context: DeskContext; stream: true }) =>
      model.runnerFor(options.context).run(first, input, options),
    options: (prompt) => ({ context: toContext(prompt) }),
    question: ({ toolName, input }, { chatKey }) => ({
      text: toQuestion(toolName, input, chatKey),
      expiresAt: Date.now() + answerMs,
    }),
    isToolError: (output, { toolName }) => DESK_TOOLS.has(toolName) && typeof output === 'string',
    errorText,
  });

  function toQuestion(toolName: string, input: unknown, chatKey: string): string {
    const { number } = (input ?? {}) as { number?: unknown };
    const booking = register.find(chatKey, String(number));
    if (toolName !== 'cancel_booking' || !booking) return `May the desk use ${toolName}?`;
    const { berth, port, paid } = booking;
    return `Cancel ${number}, ${berth} in ${port}, and refund ${paid}?`;
  }

  return {
    ...desk,
    /** Counts the turn, whatever becomes of it. */
    async *prompt(prompt) {
      let end: keyof Counts = 'stopped';
      runs.active += 1;
      try {
        for await (const chunk of desk.prompt(prompt)) {
          if ('messageMetadata' in chunk) end = toEnd(chunk.messageMetadata);
          yield chunk;
        }
      } catch (error) {
        if (!prompt.signal.aborted) end = 'failed';
        throw error;
      } finally {
        runs.active -= 1;
        runs[end] += 1;
      }
    },
  };
}

function toContext({ chatKey, messages, messageId }: AgentPrompt): DeskContext {
  const askedId = messages.findLast(({ role }) => role === 'user')?.id ?? messageId;
  return { chatKey, askedId, answerId: messageId };
}

function toEnd(metadata: unknown): 'finished' | 'failed' | 'stopped' {
  const { outcome } = (metadata ?? {}) as { outcome?: string };
  return outcome === 'finished' || outcome === 'failed' ? outcome : 'stopped';
}

/** A provider's own words may quote the key or what was said: people get ours. */
function errorText(error: unknown): string {
  if (error instanceof ScriptedFailure) return error.message;
  const { status } = (error ?? {}) as { status?: unknown };
  if (typeof status === 'number') {
    console.error(`Model provider answered ${status}.`);
    return toExplanation(status);
  }
  return 'The desk could not go on. Try again in a moment.';
}
