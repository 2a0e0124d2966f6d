/** Sessions on Node: the server, where they are kept, and everything together. */
export {
  createSessionServer,
  type SessionServer,
  type SessionServerOptions,
} from './session-server.ts';
export { type SessionStack, type SessionStackOptions, startSessionStack } from './session-stack.ts';
export { type SqliteSessionStoreOptions, sqliteSessionStore } from './sqlite-sessions.ts';
