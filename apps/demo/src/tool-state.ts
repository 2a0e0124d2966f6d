import type { DynamicToolUIPart, ToolUIPart } from 'ai';
import type { Question } from './chat-message.ts';

export type ToolPart = ToolUIPart | DynamicToolUIPart;

/** How a call of a tool stands, as a person would say it. */
export type ToolState =
  | 'preparing'
  | 'running'
  /** For somebody's word. */
  | 'waiting'
  | 'done'
  | 'failed'
  | 'denied'
  | 'expired'
  | 'withdrawn'
  | 'stopped';

export const TOOL_LABELS: Record<ToolState, string> = {
  preparing: 'Preparing',
  running: 'Running',
  waiting: 'Waiting for you',
  done: 'Done',
  failed: 'Failed',
  denied: 'Denied',
  expired: 'Not answered',
  withdrawn: 'Withdrawn',
  stopped: 'Stopped',
};

export function toToolState(
  part: ToolPart,
  question: Question | undefined,
  isLive: boolean,
): ToolState {
  if (part.state === 'output-available') return 'done';
  if (question?.status === 'expired' || question?.status === 'withdrawn') return question.status;
  if (part.state === 'output-denied' || part.approval?.approved === false) return 'denied';
  if (part.state === 'output-error') return 'failed';
  if (!isLive) return 'stopped';
  if (question?.status === 'open') return 'waiting';
  return part.state === 'input-streaming' ? 'preparing' : 'running';
}
