import { startTimeout, startTimer } from '../../core/timers.ts';
import type { Logger } from '../../core/translator.ts';
import type { Role } from '../../gateway/index.ts';
import type { SessionSocket } from '../../sessions/index.ts';
import type { User } from '../../turns/upstream.ts';

const SIGNED_OUT = 4401;
const NO_ACCESS = 4403;
const ROLE_CHANGED = 4410;

type ConnectedUser = {
  user: User;
  role: Role;
  sessionId: string;
  socket: Pick<SessionSocket, 'close'>;
};
type ConnectedUsersOptions = {
  access(user: User, sessionId: string): Promise<Role | null>;
  accessCheckMs: number;
  logger: Logger | undefined;
};

/** The people on open sockets. Closes a socket when its user's sign-in or access ends. */
export function createConnectedUsers({ access, accessCheckMs, logger }: ConnectedUsersOptions) {
  const connected = new Set<ConnectedUser>();

  async function check({ user, role, sessionId, socket }: ConnectedUser): Promise<void> {
    try {
      const now = await access(user, sessionId);
      if (!now) socket.close(NO_ACCESS, 'access was withdrawn');
      else if (now !== role) socket.close(ROLE_CHANGED, 'the role has changed: connect again');
    } catch (error) {
      // An application whose database is away does not lose all its connections.
      const { name } = error as Error;
      logger?.error?.('access could not be checked again', { sessionId, error: name });
    }
  }

  return {
    /** Gives the function to call when the socket is gone. */
    add(one: ConnectedUser): () => void {
      const { user, socket } = one;
      connected.add(one);
      let isChecking = false;
      const checks = startTimer(accessCheckMs, async () => {
        if (isChecking) return;
        isChecking = true;
        await check(one);
        isChecking = false;
      });
      const expiry =
        user.expiresAt === undefined
          ? undefined
          : startTimeout(user.expiresAt - Date.now(), () => {
              socket.close(SIGNED_OUT, 'the sign-in has expired');
            });
      return () => {
        checks.clear();
        expiry?.clear();
        connected.delete(one);
      };
    },
    disconnect(userId: string): void {
      for (const { user, socket } of connected) {
        if (user.id === userId) socket.close(NO_ACCESS, 'access was withdrawn');
      }
    },
  };
}
