import type { Channel } from '../translator.ts';
import type { User } from '../turns/upstream.ts';
import type { Admitted, Guard } from './access.ts';
import { type ChatPost, readChatPost } from './chat-post.ts';
import type { ContractChat } from './contract-chat.ts';
import type { ContractRoute, GatewayLimits, Role, RouteName, UpstreamOption } from './options.ts';
import type { WireName } from './wires.ts';

/** A chat that somebody has been let into. */
export type Place = {
  user: User;
  role: Role;
  /** What its turns are kept under. No two kinds of route share one, whatever ids they are given. */
  logSession: string;
  chatId: string;
  /** What the agent knows the session as. */
  sessionId: string;
  upstream: UpstreamOption;
  route: RouteName;
  /** The path that messages for it are sent to. */
  endpoint: string;
  meta?: ContractRoute['meta'];
};

/** One way into chats: who gets in, where their turns are kept and which wire is spoken. */
export interface ChatRoute {
  readonly wire: WireName;
  /** Reads a message, and finds out where it goes. */
  receive(
    request: Request,
    channel: Channel | undefined,
  ): Promise<{ place: Place; post: ChatPost }>;
  /** A chat that the address names. */
  enter(request: Request, chatId: string, needed: Role): Promise<Place>;
}

export type RouteContext = {
  guard: Guard;
  limits: GatewayLimits;
  upstream: UpstreamOption;
  endpoint: string;
};

/** The chats of one session. */
export function createSessionRoute(sessionId: string, context: RouteContext): ChatRoute {
  const { guard, limits, upstream, endpoint } = context;
  const logSession = sessionLogOf(sessionId);
  const placeOf = ({ user, role }: Admitted, chatId: string): Place => ({
    ...{ user, role, logSession, chatId, sessionId, upstream, endpoint, route: 'sessions' },
  });
  return {
    wire: 'ai-sdk',
    async receive(request, channel) {
      const admitted = await guard.admit(request, sessionId, 'collaborator');
      const post = await readChatPost(request, { user: admitted.user, channel, limits });
      return { place: placeOf(admitted, post.chatId), post };
    },
    async enter(request, chatId, needed) {
      return placeOf(await guard.admit(request, sessionId, needed), chatId);
    },
  };
}

/** A session's turns are kept under its own id, unless that looks like what other routes use. */
export function sessionLogOf(sessionId: string): string {
  return sessionId.startsWith('[') ? routeLogOf('sessions', sessionId) : sessionId;
}

/** What the turns of a minted chat are kept under; its user's other chats on that route are there too. */
export function contractLogOf({ route, userId }: ContractChat): string {
  return userId === '' ? routeLogOf(route, 'public') : routeLogOf(route, 'user', userId);
}

/** Unambiguous whatever the names contain. */
export function routeLogOf(...names: string[]): string {
  return JSON.stringify(names);
}
