import type { Chunk } from '../core/chunks.ts';
import type { TurnOutcome } from '../core/outcome.ts';
import type { Logger } from '../core/translator.ts';
import { withoutContent } from '../core/without-content.ts';
import type { TurnWriter } from '../turns/log.ts';
import { questionOf } from '../turns/question.ts';
import { contractChatOf } from './contract-chat.ts';
import type { RouteName } from './options.ts';
import type { Telemetry, TurnAttributes, TurnEventName } from './telemetry.ts';

export type TracedTurn = {
  route: RouteName;
  sessionId: string;
  chatId: string;
  requestId?: string;
  startedAt: number;
  headers?: Headers | undefined;
  takenOverFrom?: string | undefined;
};

export type TurnTrace = ReturnType<typeof traceTurn>;

/**
 * The span of one turn, fed from what its writer is given and reads. A telemetry that throws is
 * logged, and changes nothing for the turn.
 */
export function traceTurn(telemetry: Telemetry, turn: TracedTurn, logger: Logger | undefined) {
  const { route, sessionId, chatId, requestId, startedAt, headers, takenOverFrom } = turn;
  // On a public route the chat's id is all that opens it.
  const isPublic = contractChatOf(sessionId)?.userId === '';
  const attributes = {
    'sabir.route': route,
    ...(requestId && { 'sabir.request.id': requestId }),
    ...(!isPublic && { 'sabir.session.id': sessionId, 'sabir.chat.id': chatId }),
  };
  const span = attempt(() =>
    telemetry.startTurn({
      attributes,
      route,
      startedAt,
      isPublic,
      ...(headers && { headers }),
      ...(takenOverFrom && { takenOverFrom }),
    }),
  );
  let chunks = 0;
  let hasSent = false;

  function attempt<T>(run: () => T): T | undefined {
    try {
      return run();
    } catch (error) {
      logger?.warn('telemetry failed', { error: withoutContent(error) });
      return undefined;
    }
  }

  function event(name: TurnEventName, about?: TurnAttributes): void {
    attempt(() => span?.event(name, about));
  }

  function see(chunk: Chunk): void {
    const question = questionOf(chunk);
    if (question?.status === 'open')
      event('question', { 'sabir.question.id': question.questionId });
    if (chunk.type === 'tool-approval-request') {
      event('question', { 'sabir.question.id': chunk.approvalId });
    }
  }

  return {
    traceparent: span?.traceparent,
    event,
    /** A viewer was sent the turn's first chunk; only the first one counts. */
    firstByte(): void {
      if (!hasSent) event('first-byte');
      hasSent = true;
    },
    /** The turn runs here. */
    begin(turnId: string, isTakenOver: boolean): void {
      attempt(() => span?.set({ 'sabir.turn.id': turnId }));
      if (isTakenOver) event('takeover');
    },
    /** Runs with the span active. */
    run<T>(work: () => T): T {
      // Not within `attempt`: what the turn itself throws is not telemetry's.
      return span ? span.run(work) : work();
    },
    handOver(): void {
      event('handover');
      attempt(() => span?.end({ outcome: 'handed-over', chunks }));
    },
    end(outcome: TurnOutcome): void {
      const code = outcome.status === 'failed' ? outcome.code : undefined;
      attempt(() => span?.end({ outcome: outcome.status, ...(code && { code }), chunks }));
    },
    /** The same writer; what passes through it is seen. */
    watch(writer: TurnWriter): TurnWriter {
      const seen: Pick<TurnWriter, 'append' | 'commands'> = {
        async append(given, mark) {
          const lastSeq = await writer.append(given, mark);
          chunks += given.length;
          for (const chunk of given) if (chunk.type !== 'text-delta') see(chunk);
          return lastSeq;
        },
        async *commands() {
          for await (const command of writer.commands()) {
            if (command.type === 'stop') event('stop', stopOf(command.reason));
            else if (command.type === 'steer') event('steer');
            else event('answer', { 'sabir.question.id': command.questionId });
            yield command;
          }
        },
      };
      // A proxy, because the writer of a log may be an instance of a class with private fields.
      return new Proxy(writer, {
        get(target, name) {
          if (name === 'append' || name === 'commands') return seen[name];
          const member: unknown = Reflect.get(target, name, target);
          return typeof member === 'function' ? member.bind(target) : member;
        },
      });
    },
  };
}

function stopOf(reason: string | undefined): TurnAttributes {
  return reason ? { 'sabir.stop.reason': reason } : {};
}
