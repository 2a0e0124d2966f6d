import { BAD_REQUEST, SabirError } from '../core/errors.ts';
import { isObject } from '../core/loose.ts';
import type { Admission } from './admission.ts';
import type { ChatAudit } from './chat-audit.ts';
import type { ChatRoute } from './chat-route.ts';
import type { GatewayTurns } from './gateway-turns.ts';
import { json, nothing } from './responses.ts';
import type { Visit } from './visit.ts';

type StoppingOptions = { turns: GatewayTurns; admission: Admission; audit: ChatAudit };

/** `POST …/stop`: the turn that its body names, or what runs in the chat. */
export function createStopping({ turns, admission, audit }: StoppingOptions) {
  return async (route: ChatRoute, chatId: string, visit: Visit): Promise<Response> => {
    const place = await audit.entering('stop', { chatId, visit }, () =>
      route.enter(visit, chatId, 'collaborator'),
    );
    const sizes = { bodyBytes: route.limits.bodyBytes, isOptional: true };
    const { request } = visit;
    const { read, release } = await admission.readBody(request, place.caller, sizes, toTurnId);
    release();
    let isHeard = false;
    const live = await turns.live(place);
    const named = live.filter(({ turnId }) => turnId === read);
    for (const turn of read === undefined ? turns.toStop(live, place) : named) {
      const isTaken = await turns.stop(turn, place, 'stopped by the user');
      if (isTaken) audit.accepted('stop', { place, visit }, { turnId: turn.turnId });
      isHeard ||= isTaken;
    }
    return isHeard ? json(202, { stopped: true }) : nothing();
  };
}

function toTurnId({ value }: { value: unknown }): string | undefined {
  if (value === undefined) return undefined;
  const turnId = isObject(value) ? value.turnId : null;
  if (turnId === undefined || (typeof turnId === 'string' && turnId !== '')) return turnId;
  throw new SabirError(BAD_REQUEST, 'The body is not an object whose turnId is a string.');
}
