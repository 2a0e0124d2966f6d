import { isObject } from './loose.ts';

/** A user's rights in a session. Each role includes the ones before it. */
export type Role = 'viewer' | 'collaborator' | 'owner';

/** Who may answer a question: users of at least that role, and only the named user if there is one. */
export type AnswerBy = { role?: 'collaborator' | 'owner'; userId?: string };

const RANKS: Record<Role, number> = { viewer: 1, collaborator: 2, owner: 3 };

export function isRole(value: unknown): value is Role {
  return typeof value === 'string' && Object.hasOwn(RANKS, value);
}

/** Whether a role includes another one. A role that is none includes nothing. */
export function isAtLeast(role: Role, needed: Role): boolean {
  return RANKS[role] >= RANKS[needed];
}

/** Whether a question is for them. What cannot be understood is left to the owner, not to everybody. */
export function mayAnswer(
  answerBy: unknown,
  { user, role }: { user: { id: string }; role: Role },
): boolean {
  if (answerBy === undefined) return isAtLeast(role, 'collaborator');
  if (!isAnswerBy(answerBy)) return role === 'owner';
  const { role: needed = 'collaborator', userId = user.id } = answerBy;
  return isAtLeast(role, needed) && userId === user.id;
}

/** An unknown field may be a restriction that this version does not know. */
function isAnswerBy(value: unknown): value is AnswerBy {
  if (!isObject(value)) return false;
  const { role, userId, ...unknown } = value;
  return (
    (role === undefined || role === 'collaborator' || role === 'owner') &&
    (userId === undefined || (typeof userId === 'string' && userId !== '')) &&
    Object.keys(unknown).length === 0
  );
}
