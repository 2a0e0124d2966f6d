import type { Role } from '../core/roles.ts';
import type { Channel } from '../core/translator.ts';
import { channelKeyOf, DEFAULT_CHANNEL, type Sessions, sessionKeyOf } from '../sessions/index.ts';
import type { User } from '../turns/upstream.ts';
import type { Admitted, Guard } from './access.ts';
import type { Admission, Caller, Seat } from './admission.ts';
import { type AgUiSaid, agUiRunOf, toAgUiPost } from './ag-ui-post.ts';
import { type ChatPost, toChatPost } from './chat-post.ts';
import type { ContractChat } from './contract-chat.ts';
import type { WireName } from './open-wire.ts';
import type { ContractRoute, GatewayLimits, RouteName, UpstreamOption } from './options.ts';
import { channelOf, type Visit } from './visit.ts';

/** A chat that somebody has been let into. */
export type Place = {
  user: User;
  role: Role;
  /** Who the limits count this for. */
  caller: Caller;
  /** What its turns are kept under. No two kinds of route share one, whatever ids they are given. */
  logSession: string;
  /** What the log knows the conversation as: the chat, or in a session the channel. */
  logChat: string;
  chatId: string;
  /** What the agent knows the session as. */
  sessionId: string;
  channel?: Channel;
  upstream: UpstreamOption | undefined;
  /** The sessions in this process that answer, where no upstream does. */
  sessions?: Sessions | undefined;
  route: RouteName;
  /** The path that messages for it are sent to. */
  endpoint: string;
  meta?: ContractRoute['meta'];
  /** What an AG-UI client says of its run. */
  agUi?: AgUiSaid;
};

/** One who has been let into a chat and has a seat, before the stream begins. */
export type Seated = { visit: Visit; place: Place; wire: WireName; seat: Seat };

/** One way into chats: who gets in, where their turns are kept and which wire is spoken. */
export interface ChatRoute {
  readonly wire: WireName;
  /** How large a body may be here. */
  readonly limits: Pick<GatewayLimits, 'bodyBytes' | 'attachmentBytes'>;
  /** Who opens a WebSocket here. What they may do in a chat is asked with each of their requests. */
  knock(visit: Visit): Promise<Knocking>;
  /** Reads a message, and finds out where it goes. */
  receive(visit: Visit, channel: Channel | undefined): Promise<Received>;
  /** A chat that the address names. */
  enter(visit: Visit, chatId: string, needed: Role): Promise<Place>;
}

type Knocking = { user: User; caller: Caller };

/** `release` gives back what the message's body takes of the limits: when its turn has ended, if it begins one. */
type Received = { place: Place; post: ChatPost; release: () => void };

export type RouteContext = {
  guard: Guard;
  admission: Admission;
  limits: GatewayLimits;
  upstream: UpstreamOption | undefined;
  sessions: Sessions | undefined;
  endpoint: string;
};

/** The chats of one session, for clients of the AI SDK or of AG-UI. */
export function createSessionRoute(
  sessionId: string,
  wire: 'ai-sdk' | 'ag-ui',
  context: RouteContext,
): ChatRoute {
  const { guard, admission, limits, upstream, sessions, endpoint } = context;
  const { bodyBytes, attachmentBytes } = limits;
  // AG-UI has files as bare base64, which only the parsed body shows to be files: `toChatPost` then tells them apart.
  const sizes = wire === 'ag-ui' ? { bodyBytes: bodyBytes + attachmentBytes } : limits;
  const placeOf = ({ user, role }: Admitted, chatId: string, channel: Channel | undefined): Place =>
    inConversation({
      user,
      role,
      caller: userCaller(user),
      logSession: sessionKeyOf(sessionId),
      chatId,
      sessionId,
      ...(channel && { channel }),
      upstream,
      sessions,
      endpoint,
      route: 'sessions',
    });
  return {
    wire,
    limits,
    async knock({ request }) {
      const { user } = await guard.permitRequest(request, sessionId, 'viewer');
      return { user, caller: userCaller(user) };
    },
    async receive(visit, channel) {
      const admitted = await guard.permitRequest(visit.request, sessionId, 'collaborator');
      const { user } = admitted;
      await guard.admit(visit, user, { route: 'sessions', sessionId });
      const caller = userCaller(user);
      const { read: post, release } = await admission.readBody(
        visit.request,
        caller,
        sizes,
        (body) => {
          const about = { user, channel, limits };
          return wire === 'ag-ui' ? toAgUiPost(body, about) : toChatPost(body, about);
        },
      );
      const place = placeOf(admitted, post.chatId, channel);
      const agUi = wire === 'ag-ui' && agUiRunOf(post);
      return { place: agUi ? { ...place, agUi } : place, post, release };
    },
    async enter({ request, url }, chatId, needed) {
      const admitted = await guard.permitRequest(request, sessionId, needed);
      return placeOf(admitted, chatId, channelOf(url));
    },
  };
}

export function userCaller({ id }: User): Caller {
  return { kind: 'user', key: id };
}

/** Where the log keeps its turns: a session's own are under its channels, whichever route leads there. */
export function inConversation(place: Omit<Place, 'logChat'>): Place {
  const { sessions, sessionId, channel = DEFAULT_CHANNEL } = place;
  if (!sessions) return { ...place, logChat: place.chatId };
  return { ...place, logSession: sessionKeyOf(sessionId), logChat: channelKeyOf(channel) };
}

/** What the turns of a minted chat are kept under; its user's other chats on that route are there too. */
export function contractLogOf({ route, userId }: ContractChat): string {
  return userId === '' ? routeLogOf(route, 'public') : routeLogOf(route, 'user', userId);
}

/** Unambiguous whatever the names contain. */
export function routeLogOf(...names: string[]): string {
  return JSON.stringify(names);
}

/** The key under which an agent may keep the turns of a chat. On the contract routes it differs for each user. */
export function chatKeyOf({ logSession, logChat }: Pick<Place, 'logSession' | 'logChat'>): string {
  return JSON.stringify([logSession, logChat]);
}
