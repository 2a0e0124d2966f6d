import { BAD_REQUEST, NOT_FOUND, SabirError } from '../errors.ts';
import { createId } from '../id.ts';
import type { User } from '../turns/upstream.ts';
import { readChatPost } from './chat-post.ts';
import {
  type ChatRoute,
  contractLogOf,
  type Place,
  type RouteContext,
  routeLogOf,
} from './chat-route.ts';
import { contractSessionOf, isMinted } from './contract-chat.ts';
import type { ContractRoute, Role } from './options.ts';

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
  const { guard, limits, endpoint } = context;

  async function identify(request: Request): Promise<User> {
    if (!isPublic) return guard.identify(request);
    guard.checkPage(request);
    return ANYBODY;
  }

  async function placeOf(user: User, chatId: string, needed: Role): Promise<Place> {
    const place = {
      ...{ user, chatId, endpoint, route: name },
      upstream: upstream ?? context.upstream,
      ...(meta && { meta }),
    };
    if (!isMinted(chatId)) {
      // Without a user, `access` cannot tell whose session it is.
      if (isPublic) throw new SabirError(NOT_FOUND);
      const { role } = await guard.permit(user, chatId, needed);
      const logSession = routeLogOf(name, 'session', chatId);
      return { ...place, role, logSession, sessionId: chatId };
    }
    const chat = { route: name, userId: isPublic ? '' : user.id, chatId };
    const sessionId = contractSessionOf(chat);
    const minted = { ...place, sessionId, logSession: contractLogOf(chat) };
    if (!isPublic) return { ...minted, role: (await guard.permit(user, sessionId, needed)).role };
    await guard.checkSwitch(user, sessionId);
    return { ...minted, role: 'owner' };
  }

  return {
    wire: 'contract',
    async receive(request, channel) {
      const user = await identify(request);
      const post = await readChatPost(request, { user, channel, limits });
      return { place: await placeOf(user, chatIdOf(post.body), 'collaborator'), post };
    },
    enter: async (request, chatId, needed) => placeOf(await identify(request), chatId, needed),
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
