import type { Chunk } from '../../core/chunks.ts';

/** What `experimental_createSteering` of AI SDK 7 gives: good for one call of the SDK. */
export type SdkSteering = {
  steer(message: object, options: { id: string }): PromiseLike<SteerOutcome>;
};
type SteerOutcome = { type: 'delivered' } | { type: 'not-delivered'; reason: string };

type Waiting = { message: object; resolve(isTaken: boolean): void };
/** As much of a step as is looked at. */
type Step = { experimental_steeringMessages?: unknown[]; response: { messages: unknown[] } };

/** The SDK's call ended because people have to decide something. The next call takes the message. */
const UNTIL_NEXT_CALL = 'waiting-for-tool-results';

export type SdkTurnSteering = ReturnType<typeof createSdkTurnSteering>;

/** The messages for one turn, which may take several calls of the SDK. What the signal's abort finds waiting is not taken. */
export function createSdkTurnSteering(signal: AbortSignal) {
  const waiting = new Map<string, Waiting>();
  let current: SdkSteering | undefined;

  function settle(id: string, isTaken: boolean): void {
    waiting.get(id)?.resolve(isTaken);
    waiting.delete(id);
  }

  async function give(steering: SdkSteering, id: string, message: object): Promise<void> {
    const outcome = await steering.steer(message, { id });
    const isLeft = outcome.type === 'not-delivered' && outcome.reason !== UNTIL_NEXT_CALL;
    if (isLeft) settle(id, false);
  }

  signal.addEventListener('abort', () => {
    for (const id of [...waiting.keys()]) settle(id, false);
  });

  return {
    steer(id: string, message: object): Promise<boolean> {
      if (signal.aborted) return Promise.resolve(false);
      const { promise, resolve } = Promise.withResolvers<boolean>();
      waiting.set(id, { message, resolve });
      if (current) void give(current, id, message);
      return promise;
    },
    /** A call of the SDK begins. */
    begin(steering: SdkSteering): void {
      current = steering;
      for (const [id, { message }] of waiting) void give(steering, id, message);
    },
    /** A chunk of the call was shown: the SDK shows a message when the model gets it. */
    see(chunk: Chunk): void {
      if (chunk.type === 'steering-message') settle(chunk.id, true);
    },
    /** The call has ended, and another one may follow. */
    end(): void {
      current = undefined;
    },
  };
}

/** What was said in a call, people's messages included: the SDK's own list of what it has said leaves them out. */
export function withSteering(said: unknown[], steps: readonly Step[] = []): unknown[] {
  if (!steps.some((step) => step.experimental_steeringMessages)) return said;
  const inSteps = steps.reduce((sum, { response }) => sum + response.messages.length, 0);
  const own = steps.flatMap(({ experimental_steeringMessages: steered = [], response }) => [
    ...steered,
    ...response.messages,
  ]);
  return [...said.slice(0, said.length - inSteps), ...own];
}
