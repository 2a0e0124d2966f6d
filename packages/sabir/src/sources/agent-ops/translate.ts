import type { Translator } from '../../core/translator.ts';
import type { AgentOpsEvent } from './events.ts';
import { createLinkedTurn } from './linked-turn.ts';
import { createTurnMatcher, type Match, type TurnMatcher } from './match-turn.ts';
import type { AgentOpsOptions } from './options.ts';
import { createTurnTranslator } from './translate-turn.ts';

export interface AgentOpsTranslator extends Translator<AgentOpsEvent> {
  /** Our prompt waits in the session, for its turn or its runner: silence is no sign of a failure. */
  readonly waiting: boolean;
}

const OF_OUR_TURN: ReadonlySet<Match> = new Set<Match>([
  'begun',
  'ours',
  'queued',
  'ended',
  'cut',
  'unannounced',
]);

/**
 * Agent Ops events → chunks, for one turn, in either dialect. It may be given all that a session
 * sends: a matcher finds the events of our turn.
 */
export function createAgentOpsTranslator(options: AgentOpsOptions = {}): AgentOpsTranslator {
  const matcher = toMatcher(options);
  const translator = createTurnTranslator(options);
  return {
    stats: translator.stats,
    get ended() {
      return translator.ended;
    },
    get waiting() {
      return matcher.isWaiting;
    },
    push(event) {
      if (translator.ended) return [];
      const match = matcher.match(event);
      const { place } = matcher;
      const shown = place === undefined ? undefined : translator.showPlace(place);
      const chunks = OF_OUR_TURN.has(match) ? translator.push(event) : [];
      return shown ? [...shown, ...chunks] : chunks;
    },
    end: (outcome) => translator.end(outcome),
  };
}

function toMatcher({ promptId, turnId, channel, dialect }: AgentOpsOptions): TurnMatcher {
  if (promptId !== undefined) return createLinkedTurn(promptId, turnId, dialect);
  const matcher = createTurnMatcher(dialect);
  matcher.expect({ turnId, channel });
  return matcher;
}
