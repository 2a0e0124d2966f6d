/**
 * The names of chats on the routes of the contract. A minted chat id belongs to the user who sends it, so the
 * agent's session is named after route, user and chat: two users with the same id have two sessions.
 */

/** Long and random enough that no other user can guess it, whether the gateway or a client minted it. */
const MINTED = /^chat_[0-9a-z]{32,64}$/;
const SESSION = /^(chat|onboarding):([^:]*):(chat_[0-9a-z]{32,64})$/;

export type ContractChat = {
  route: 'chat' | 'onboarding';
  /** Empty on a public route: no user has an empty id. */
  userId: string;
  chatId: string;
};

export function isMinted(chatId: string): boolean {
  return MINTED.test(chatId);
}

/** The session id of a minted chat. Encoding the user id keeps a colon in it from naming another user. */
export function contractSessionOf({ route, userId, chatId }: ContractChat): string {
  return `${route}:${encodeURIComponent(userId)}:${chatId}`;
}

/**
 * Reads the session id that `access`, `enabled` and agents get for a minted chat of `/api/chat` or
 * `/api/onboarding`; undefined for every other session id.
 *
 * @example
 * access(user, sessionId) {
 *   const chat = contractChatOf(sessionId);
 *   if (chat) return chat.userId === user.id ? 'owner' : null;
 *   return roleIn(user, sessionId);
 * }
 */
export function contractChatOf(sessionId: string): ContractChat | undefined {
  const [, route, user = '', chatId = ''] = SESSION.exec(sessionId) ?? [];
  if (route !== 'chat' && route !== 'onboarding') return undefined;
  const userId = decode(user);
  if (userId === undefined) return undefined;
  const chat = { route, userId, chatId } as const;
  // A second spelling of the same user would be a second session.
  return contractSessionOf(chat) === sessionId ? chat : undefined;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
