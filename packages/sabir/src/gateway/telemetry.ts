import type { RouteName } from './options.ts';

/** What happens in a turn between its start and its end. */
export type TurnEventName =
  | 'first-byte'
  | 'resume'
  | 'stop'
  | 'question'
  | 'answer'
  /** A message came into the running turn. */
  | 'steer'
  /** This gateway goes on with the turn of another one. */
  | 'takeover'
  /** Another gateway goes on with this turn. */
  | 'handover';

/** Ids, counts and codes. Never what people or agents say. */
export type TurnAttributes = Readonly<Record<string, string | number | boolean>>;

export type TurnStart = {
  /** `sabir.route`, `sabir.request.id`, and those of session and chat unless they open a chat. */
  attributes: TurnAttributes;
  route: RouteName;
  /** Milliseconds since 1970. */
  startedAt: number;
  /** Of the request that asked; none for a turn that was taken over. */
  headers?: Headers;
  /** Anybody may have sent the request: its headers are not to be trusted. */
  isPublic: boolean;
  /** The `traceparent` of the gateway that began this turn. */
  takenOverFrom?: string;
};

export type TurnEnd = {
  /** `handed-over` if another gateway goes on with it. */
  outcome: 'finished' | 'stopped' | 'failed' | 'paused' | 'lost' | 'handed-over';
  code?: string;
  /** How many chunks this gateway has written. */
  chunks: number;
};

/** One turn in one gateway. */
export interface TurnSpan {
  /** W3C Trace Context, for the agent. */
  readonly traceparent?: string | undefined;
  set(attributes: TurnAttributes): void;
  event(name: TurnEventName, attributes?: TurnAttributes): void;
  end(end: TurnEnd): void;
  /** Runs the turn so that what it calls finds this span. */
  run<T>(work: () => T): T;
}

/** Follows turns for an operator. `otel()` of `sabir/otel` makes one for OpenTelemetry. */
export interface Telemetry {
  /** A turn begins here. One that never runs is not ended. */
  startTurn(turn: TurnStart): TurnSpan;
}
