import type { Loose } from '../core/loose.ts';
import { SHAPES, V2_TYPES } from '../sources/agent-ops/event-shapes.ts';
import { parseFrame } from './parse-frame.ts';
import type { TurnEvent } from './protocol.ts';

/** What a session says itself, and no runner may say in its place. */
const OURS: ReadonlySet<string> = new Set([
  ...['init', 'message', 'message.updated', 'chunk', 'status', 'pong', 'ack'],
  ...['user.joined', 'user.left', 'queue.state', 'queue.withdrawn'],
  // As deployed servers ask people; a runner asks with `question`, which is stored with who may answer.
  ...['interactive_prompt', 'interactive_prompt_resolved', 'interactive_prompt_expired'],
]);
const ABOUT_TURN: ReadonlySet<string> = new Set(['complete', 'aborted', 'error', 'agentStatus']);

export type RunnerFrame =
  | { kind: 'turn' | 'about' | 'hello' | 'ping' | 'domain'; event: Loose & { type: string } }
  | { kind: 'malformed'; type: string };

export function readRunnerEvent(frame: string): RunnerFrame {
  let event: Loose;
  try {
    event = parseFrame(frame);
  } catch {
    return { kind: 'malformed', type: '(no JSON)' };
  }
  const { type } = event;
  if (typeof type !== 'string' || Array.isArray(event)) {
    return { kind: 'malformed', type: '(no type)' };
  }
  const known = event as Loose & { type: string };
  if (type === 'ping') return { kind: 'ping', event: known };
  if (type === 'runner.hello') {
    return Array.isArray(event.known)
      ? { kind: 'hello', event: known }
      : { kind: 'malformed', type };
  }
  if (ABOUT_TURN.has(type)) return { kind: 'about', event: known };
  if (OURS.has(type)) return { kind: 'malformed', type };
  const isOfTurn = V2_TYPES.has(type) || type === 'question';
  if (!isOfTurn) return { kind: 'domain', event: known };
  const isSound = SHAPES[type as TurnEvent['type']](event);
  return isSound ? { kind: 'turn', event: known } : { kind: 'malformed', type };
}
