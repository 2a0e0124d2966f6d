import { isObject } from '../core/loose.ts';
import { isRole, type Role } from '../core/roles.ts';
import type { Channel } from '../core/translator.ts';
import type { Prompt, User } from '../turns/upstream.ts';
import type { RouteName } from './options.ts';

/** What a prompt is made of again, in a gateway that goes on with it. */
type Asked = Pick<Prompt, 'userMessage' | 'body' | 'trigger' | 'replaces'>;

/** What is kept with a turn for the gateway that goes on with it when this one is gone. */
export type TurnOrigin = {
  route: RouteName;
  /** What the agent knows the session as. */
  sessionId: string;
  user: User;
  role: Role;
  channel?: Channel;
  isRestored?: true;
  /** The trace of the gateway that began it. */
  traceparent?: string;
  /** Not there if it was too large: such a turn is lost with its gateway. */
  asked?: Asked;
};

/** What is larger is not kept: files that were attached, mostly. */
const MOST_KEPT = 1_000_000;

export function toOrigin(
  route: RouteName,
  prompt: Omit<Prompt, 'turnId' | 'messageId'>,
  { role, keepUser }: { role: Role; keepUser: (user: User) => User },
): TurnOrigin {
  const { sessionId, user, channel, isRestored, traceparent } = prompt;
  const { userMessage, body, trigger, replaces } = prompt;
  const asked: Asked = {
    ...(userMessage && { userMessage }),
    body,
    ...(trigger && { trigger }),
    ...(replaces !== undefined && { replaces }),
  };
  const isSmall = JSON.stringify(asked).length <= MOST_KEPT;
  return {
    route,
    sessionId,
    user: keepUser(user),
    role,
    ...(channel && { channel }),
    ...(isRestored && { isRestored }),
    ...(traceparent && { traceparent }),
    ...(isSmall && { asked }),
  };
}

/** Nothing of what another version may have kept there. */
export function readOrigin(origin: unknown): TurnOrigin | undefined {
  if (!isObject(origin)) return undefined;
  const { route, sessionId, user, role } = origin;
  const isPlaced = typeof route === 'string' && typeof sessionId === 'string';
  const isOne = isPlaced && isObject(user) && isRole(role);
  return isOne && typeof user.id === 'string' ? (origin as TurnOrigin) : undefined;
}
