import type { Translator } from '../../core/translator.ts';
import type { AgentOpsEvent } from './events.ts';
import type { Match } from './match.ts';
import { createTurnMatcher } from './match-turn.ts';
import type { AgentOpsOptions } from './options.ts';
import { createTurnTranslator } from './translate-turn.ts';

export interface AgentOpsTranslator extends Translator<AgentOpsEvent> {
  /** Our prompt waits in the session, for its turn or its runner: silence is no sign of a failure. */
  readonly waiting: boolean;
}

const OURS: readonly Match[] = ['ours', 'begun', 'queued', 'ended', 'cut', 'unannounced'];

/**
 * Agent Ops events → chunks, for one turn, in either dialect. It takes all that a session sends: a
 * matcher finds the events of our turn.
 */
export function createAgentOpsTranslator(options: AgentOpsOptions = {}): AgentOpsTranslator {
  const { turnId, channel, dialect } = options;
  const matcher = createTurnMatcher(dialect, { turnId, channel });
  const translator = createTurnTranslator(options, (type, event) =>
    OURS.includes(matcher.apply(type, event)),
  );
  return {
    stats: translator.stats,
    get ended() {
      return translator.ended;
    },
    get waiting() {
      return !translator.ended && matcher.isWaiting;
    },
    push: translator.push,
    end: translator.end,
  };
}
