import { BAD_REQUEST, NOT_FOUND, SabirError } from '../errors.ts';
import { createId } from '../id.ts';
import type { User } from '../turns/upstream.ts';
import { readChatPost } from './chat-post.ts';
import { type ChatRoute, type Place, type RouteContext, routeLogOf } from './chat-route.ts';
import type { ContractRoute, Role } from './options.ts';

/** What nobody else can guess, whoever made it: the client's own code may, to know it beforehand. */
const MINTED = /^chat_[0-9a-z]{32,64}$/;

/** Whoever it is. */
const ANYBODY: User = Object.freeze({ id: 'public' });

/**
 * Chats that have no session around them. One with a minted id is its maker's alone: another user's
 * chat of the same id is another chat. Any other id is a session's, and `access` is asked.
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
      ...{ user, chatId, sessionId: chatId, endpoint, route: name },
      upstream: upstream ?? context.upstream,
      ...(meta && { meta }),
    };
    if (MINTED.test(chatId)) {
      await guard.checkSwitch(user, chatId);
      const names = isPublic ? ['public'] : ['user', user.id];
      return { ...place, role: 'owner', logSession: routeLogOf(name, ...names) };
    }
    // What has no owner could be anybody's session.
    if (isPublic) throw new SabirError(NOT_FOUND);
    const { role } = await guard.permit(user, chatId, needed);
    return { ...place, role, logSession: routeLogOf(name, 'session', chatId) };
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
