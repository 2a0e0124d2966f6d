import { BAD_REQUEST, NOT_FOUND, SabirError } from '../core/errors.ts';
import { createId } from '../core/id.ts';
import type { Role } from '../core/roles.ts';
import type { User } from '../turns/upstream.ts';
import { addressKeyOf } from './address.ts';
import type { Caller } from './admission.ts';
import { toChatPost } from './chat-post.ts';
import {
  type ChatRoute,
  contractLogOf,
  inConversation,
  type Place,
  type RouteContext,
  routeLogOf,
  userCaller,
} from './chat-route.ts';
import { contractSessionOf, isMinted } from './contract-chat.ts';
import type { ContractRoute } from './options.ts';
import type { Visit } from './visit.ts';

/** The user of every request on a public route. */
const ANYBODY: User = Object.freeze({ id: 'public' });

/**
 * Chats that have no session around them. A chat with a minted id belongs to the user who sends it:
 * another user's chat with the same id is another chat. Any other id is a session's.
 */
export function createContractRoute(
  name: 'chat' | 'onboarding',
  { upstream, public: isPublic = false, meta }: ContractRoute,
  context: RouteContext,
): ChatRoute {
  const { guard, admission, endpoint } = context;
  const { bodyBytes, attachmentBytes, publicBodyBytes, publicAttachmentBytes } = context.limits;
  const limits = isPublic
    ? { bodyBytes: publicBodyBytes, attachmentBytes: publicAttachmentBytes }
    : { bodyBytes, attachmentBytes };

  async function identify(request: Request): Promise<User> {
    if (!isPublic) return guard.identify(request);
    guard.checkPage(request);
    return ANYBODY;
  }

  function callerOf(user: User, { address }: Visit): Caller {
    return isPublic ? { kind: 'address', key: addressKeyOf(address) } : userCaller(user);
  }

  async function knock(visit: Visit): Promise<{ user: User; caller: Caller }> {
    const user = await identify(visit.request);
    return { user, caller: callerOf(user, visit) };
  }

  async function placeOf(
    { user, caller }: { user: User; caller: Caller },
    chatId: string,
    needed: Role,
  ): Promise<Place> {
    const place = {
      user,
      caller,
      chatId,
      endpoint,
      route: name,
      upstream: upstream ?? context.upstream,
      sessions: upstream ? undefined : context.sessions,
      ...(meta && { meta }),
    };
    if (!isMinted(chatId)) {
      // Without a user, `access` cannot tell whose session it is.
      if (isPublic) throw new SabirError(NOT_FOUND);
      const { role } = await guard.permit(user, chatId, needed);
      const logSession = routeLogOf(name, 'session', chatId);
      return inConversation({ ...place, role, logSession, sessionId: chatId });
    }
    const chat = { route: name, userId: isPublic ? '' : user.id, chatId };
    const sessionId = contractSessionOf(chat);
    const minted = { ...place, sessionId, logSession: contractLogOf(chat) };
    if (!isPublic) {
      const { role } = await guard.permit(user, sessionId, needed);
      return inConversation({ ...minted, role });
    }
    await guard.checkSwitch(user, sessionId);
    return inConversation({ ...minted, role: 'owner' });
  }

  return {
    wire: 'contract',
    limits,
    knock,
    async receive(visit, channel) {
      const { user, caller } = await knock(visit);
      await guard.admit(visit, user, { route: name });
      const { read, release } = await admission.readBody(
        visit.request,
        caller,
        limits,
        async (body) => {
          const post = await toChatPost(body, { user, channel, limits });
          return {
            place: await placeOf({ user, caller }, chatIdOf(post.body), 'collaborator'),
            post,
          };
        },
      );
      return { ...read, release };
    },
    async enter(visit, chatId, needed) {
      return placeOf(await knock(visit), chatId, needed);
    },
  };
}

/** An application that has no session yet may say so with null. */
function chatIdOf({ sessionId }: Record<string, unknown>): string {
  if (sessionId === undefined || sessionId === null) return `chat_${createId()}`;
  if (typeof sessionId !== 'string' || sessionId === '' || sessionId.length > 512) {
    throw new SabirError(BAD_REQUEST, 'sessionId is not a string of 1 to 512 characters.');
  }
  return sessionId;
}
