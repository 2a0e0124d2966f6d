import { toJsonSafe } from '../core/json.ts';
import type { AgentStatus, DriverEvent } from '../turns/driver.ts';
import type { PartEvent } from './protocol.ts';

type Ids = { turnId: string; promptId: string };
type V2 = { type: string; [field: string]: unknown };

/** What a driver does, as V2 tells it. */
export function toV2(event: DriverEvent, { turnId, promptId }: Ids): V2 {
  const part = (given: PartEvent): V2 => ({ ...given, type: given.type, turnId });
  switch (event.type) {
    case 'text':
      return part({ type: 'message.part.text-delta', delta: String(event.delta) });
    case 'reasoning':
      return part({ type: 'message.part.reasoning-delta', delta: String(event.delta) });
    case 'tool': {
      const { callId, toolName, status, error } = event;
      const call = {
        callId,
        toolName,
        status,
        ...(error !== undefined && { error: String(error) }),
      };
      return part({
        type: 'message.part.tool-update',
        ...call,
        ...(event.args !== undefined && { args: toJsonSafe(event.args) }),
        ...('result' in event && { result: toJsonSafe(event.result) }),
      });
    }
    case 'tool-input': {
      const { callId, toolName, delta } = event;
      return part({
        type: 'message.part.tool-input-delta',
        callId,
        toolName,
        delta: String(delta),
      });
    }
    case 'source':
      return part({ ...event, type: 'message.part.source' });
    case 'file':
      return part({ ...event, type: 'message.part.file' });
    case 'data':
      return part({ ...event, type: 'message.part.data', data: toJsonSafe(event.data) });
    case 'step':
      return part({ type: 'message.part.step' });
    case 'status': {
      const { status, detail } = event;
      return toAgentStatus(promptId, status, detail);
    }
    case 'usage': {
      const { usage, model } = event;
      const entry = { ...usage, ...(model !== undefined && { model }) };
      return { type: 'usage-report', turnId, entries: [entry] };
    }
    case 'event':
      return toJsonSafe(event.event) as V2;
  }
}

export function toAgentStatus(promptId: string, status: AgentStatus, detail?: string): V2 {
  const about = detail === undefined ? undefined : { detail };
  return { type: 'agentStatus', messageId: promptId, status, ...about };
}

/** What an agent is evidently doing, where it does not say so itself. */
export function statusOf(event: DriverEvent): { status: AgentStatus; detail?: string } | undefined {
  if (event.type === 'text') return { status: 'streaming' };
  if (event.type === 'reasoning') return { status: 'thinking' };
  if (event.type !== 'tool' || event.status === 'completed' || event.status === 'error') {
    return undefined;
  }
  return { status: 'tool_calling', detail: event.toolName };
}
