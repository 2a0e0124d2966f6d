/** What can be read from one event alone: whether it is sound, its dialect, what kind it is. */
import type { Loose } from '../../core/loose.ts';
import { isCallState } from './calls.ts';
import type { EventOf, SessionMessage, SessionStatus, TurnEventType } from './events.ts';
import { isData, isFile, isSource } from './part-shapes.ts';

export const isObject = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null;
export const isString = (value: unknown): value is string => typeof value === 'string';
export const isNamed = (id: unknown): id is string => isString(id) && id !== '';

const anything = () => true;
const isOfTurn = ({ turnId }: Loose) => turnId == null || isString(turnId);
const isDelta = (event: Loose) => isOfTurn(event) && isString(event.delta);
const isMessage = ({ data }: Loose) => isObject(data) && isNamed(data.id);
const isOfQuestion = ({ promptId }: Loose) => isString(promptId);
const isMaybeName = (name: unknown) => name == null || isString(name);

const SHAPES: Record<TurnEventType, (event: Loose) => boolean> = {
  'message.create': ({ turnId }) => isNamed(turnId),
  'message.part.text-delta': isDelta,
  'message.part.reasoning-delta': isDelta,
  'message.part.tool-update': (event) => isOfTurn(event) && isCallState(event),
  'message.part.tool-input-delta': (event) =>
    isDelta(event) && isNamed(event.callId) && isMaybeName(event.toolName),
  'message.part.step': isOfTurn,
  'message.part.source': (event) => isOfTurn(event) && isSource(event),
  'message.part.file': (event) => isOfTurn(event) && isFile(event),
  'message.part.data': (event) => isOfTurn(event) && isData(event),
  'message.finalize': isOfTurn,
  complete: anything,
  aborted: anything,
  'usage-report': (event) => isOfTurn(event) && Array.isArray(event.entries),
  init: anything,
  message: isMessage,
  'message.updated': isMessage,
  chunk: ({ content }) => isString(content),
  agentStatus: ({ status }) => isString(status),
  status: ({ data }) => data == null || isObject(data),
  error: anything,
  question: ({ questionId }) => isNamed(questionId),
  interactive_prompt: ({ prompt }) => isObject(prompt) && isNamed(prompt.id),
  interactive_prompt_resolved: isOfQuestion,
  interactive_prompt_expired: isOfQuestion,
  'queue.state': anything,
  'queue.withdrawn': anything,
};

/** The same as a map: most events are deltas, and a map finds a shape faster than an object does. */
const shapes: ReadonlyMap<string, (event: Loose) => boolean> = new Map(Object.entries(SHAPES));

const SNAPSHOT_TYPES: ReadonlySet<string> = new Set<TurnEventType>([
  'init',
  'message',
  'message.updated',
  'chunk',
]);
export const V2_TYPES: ReadonlySet<string> = new Set<TurnEventType>([
  'message.create',
  'message.part.text-delta',
  'message.part.reasoning-delta',
  'message.part.tool-update',
  'message.part.tool-input-delta',
  'message.part.step',
  'message.part.source',
  'message.part.file',
  'message.part.data',
  'message.finalize',
  'complete',
  'aborted',
  'usage-report',
]);

/** Whether a translator handles events of this type, and this one has the shape of them. */
export function soundnessOf(type: string, event: Loose): 'sound' | 'malformed' | 'unknown' {
  const isSound = shapes.get(type);
  if (!isSound) return 'unknown';
  return isSound(event) ? 'sound' : 'malformed';
}

/** The types that do not count for who listens to one dialect. */
export function otherTypes(dialect: 'auto' | 'v2' | 'snapshot'): ReadonlySet<string> | undefined {
  if (dialect === 'auto') return undefined;
  return dialect === 'v2' ? SNAPSHOT_TYPES : V2_TYPES;
}

/** The snapshot says that its turn is over. */
export function hasFinish({ parts }: SessionMessage): boolean {
  return Array.isArray(parts) && parts.some((part) => part?.type === 'finish');
}

/** What a session's status is about, where it is about prompts or turns. */
export function statusKindOf(status: SessionStatus): 'queue' | 'runner-lost' | 'idle' | undefined {
  if (status.promptQueued === true || status.promptDequeued === true) return 'queue';
  // Also sent with `runnerBusy: false`; the session sends the prompt again.
  if (status.runnerDisconnected || status.watchdogRecovery) return 'runner-lost';
  return status.runnerBusy === false || status.aborted === true ? 'idle' : undefined;
}

/** False where the session refuses a request, often an answer to a question: no turn has failed. */
export function isTurnError(event: EventOf<'error'>): boolean {
  const more: Loose = isObject(event.data) ? event.data : {};
  const { refused, questionId, turnId, promptId = more.promptId } = event;
  if (refused !== undefined || questionId !== undefined) return false;
  return turnId != null || promptId === undefined;
}
