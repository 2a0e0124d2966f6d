/** Turns of an agent behind `asUpstream`, run as the gateway runs them. */
import type { Chunk } from '../src/core/chunks.ts';
import type { TurnOutcome } from '../src/core/outcome.ts';
import { asUpstream } from '../src/sources/ai-sdk/upstream.ts';
import type { Agent, AgentFunction } from '../src/turns/agent.ts';
import type { Prompt, UpstreamSession } from '../src/turns/upstream.ts';

export const USER = { id: 'u' };
export const TEXT: Chunk[] = [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'hello' },
];
export const tick = (ms = 0) => new Promise<void>((resolve) => setTimeout(resolve, ms));

export async function openSession(agent: Agent | AgentFunction): Promise<UpstreamSession> {
  const { signal } = new AbortController();
  return asUpstream(agent).open({ sessionId: 's', user: USER, role: 'owner', signal });
}

function promptOf(given: Partial<Prompt> = {}): Prompt {
  const ids = { sessionId: 's', chatId: 'c', chatKey: 'k', turnId: 'turn', messageId: 'm' };
  const rest = { user: USER, text: 'hi', attachments: [], messages: [], body: {} };
  return { ...ids, ...rest, ...given };
}

/** A turn as the gateway runs it: every event through the translator, the end by its outcome. */
export function play(session: UpstreamSession, given?: Partial<Prompt>, onEnded?: () => void) {
  const chunks: Chunk[] = [];
  const outcomes: TurnOutcome[] = [];
  const over = Promise.withResolvers<void>();
  const turn = session.prompt(promptOf(given), {
    event(event) {
      chunks.push(...turn.translator.push(event));
      if (!turn.translator.ended) return;
      onEnded?.();
      over.resolve();
    },
    close(outcome) {
      outcomes.push(outcome);
      chunks.push(...turn.translator.end(outcome));
      over.resolve();
    },
  });
  return { turn, chunks, outcomes, over: over.promise };
}

export async function run(agent: Agent | AgentFunction, given?: Partial<Prompt>) {
  const played = play(await openSession(agent), given);
  await played.over;
  return played;
}
