import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fold, WEB } from '../../../test/agent-ops-events.ts';
import {
  anyEvents,
  anySharedSocket,
  OUR_PROMPT,
  type SharedSocket,
} from '../../../test/arbitrary-agent-ops.ts';
import { promptOf, watch } from '../../../test/upstream-turn.ts';
import { foldChunks } from '../../core/fold.ts';
import { createTurnMatcher } from './match-turn.ts';
import { AgentOpsSession } from './session.ts';
import { createTurnTranslator } from './translate-turn.ts';

const NUM_RUNS = Number(process.env.PROPERTY_RUNS ?? 1_000);

/** The message of our turn, as a gateway gets it. */
function foldSession({ events, before }: SharedSocket) {
  const session = new AgentOpsSession({
    ...{ channel: WEB, dialect: 'auto', approvals: false, pingMs: 60_000, settleMs: 2_000 },
    history: async () => [],
  });
  session.connected({ isOpen: true, send: () => undefined, close: () => undefined });
  for (const event of events.slice(0, before)) session.event(event);
  const watched = watch(session, promptOf(OUR_PROMPT));
  for (const event of events.slice(before)) session.event(event);
  session.close();
  return foldChunks(watched.chunks);
}

/** The message of our turn, where no other turn is on the socket. */
function foldAlone({ ours }: SharedSocket) {
  const translator = createTurnTranslator({});
  return foldChunks(ours.flatMap((event) => translator.push(event)));
}

describe('two turns on one socket', () => {
  it('give our turn the same message in a session, in a translator, and alone', () => {
    fc.assert(
      fc.property(anySharedSocket(), (socket) => {
        const alone = foldAlone(socket);
        expect(alone.id).toBe('t');
        expect(foldSession(socket)).toEqual(alone);
        expect(fold(socket.events.slice(socket.before), { channel: WEB })).toEqual(alone);
      }),
      { numRuns: NUM_RUNS },
    );
  });
});

describe('any events in any order', () => {
  it('end a turn for its translator exactly when they end it for the matcher', () => {
    const given = fc.record(
      {
        content: fc.constantFrom('abc', ''),
        turnId: fc.constantFrom('t', 'x'),
        channel: fc.constant(WEB),
      },
      { requiredKeys: [] },
    );
    const dialect = fc.constantFrom('auto' as const, 'v2' as const, 'snapshot' as const);
    fc.assert(
      fc.property(anyEvents(), given, dialect, (events, prompt, of) => {
        const matcher = createTurnMatcher(of, prompt);
        const translator = createTurnTranslator({ turnId: prompt.turnId });
        // A server that numbers its events may repeat them, and names its prompts.
        for (const { seq: _, ...event } of events) {
          const match = matcher.match(event);
          const isEnd = match === 'ended' || match === 'cut' || match === 'unannounced';
          if (isEnd || ['begun', 'ours', 'queued'].includes(match)) translator.push(event);
          expect(translator.ended, match).toBe(isEnd);
          if (isEnd) return;
        }
      }),
      { numRuns: NUM_RUNS },
    );
  });
});
