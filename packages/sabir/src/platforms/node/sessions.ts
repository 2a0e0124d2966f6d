/** Sessions on Node: the server, where they are kept, and everything together. */
export {
  createLocalRunners,
  type LocalRunners,
  type LocalRunnersOptions,
} from './local-runners.ts';
export {
  createSessionServer,
  type SessionServer,
  type SessionServerOptions,
} from './session-server.ts';
export { type SessionStack, type SessionStackOptions, startSessionStack } from './session-stack.ts';
export { type SqliteSessionStoreOptions, sqliteSessionStore } from './sqlite-sessions.ts';
