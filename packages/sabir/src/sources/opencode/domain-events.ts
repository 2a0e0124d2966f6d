/** What an OpenCode server also says, and a chat has no place for: known, skipped, not drift. */
const DOMAIN_EVENT_TYPES = [
  'catalog.updated',
  'command.executed',
  'file.edited',
  'file.watcher.updated',
  'global.disposed',
  'installation.update-available',
  'installation.updated',
  'integration.connection.updated',
  'integration.updated',
  'lsp.client.diagnostics',
  'lsp.updated',
  'mcp.browser.open.failed',
  'mcp.tools.changed',
  'message.part.removed',
  'message.removed',
  'models-dev.refreshed',
  'permission.v2.asked',
  'permission.v2.replied',
  'plugin.added',
  'project.directories.updated',
  'project.updated',
  'pty.created',
  'pty.deleted',
  'pty.exited',
  'pty.updated',
  'question.v2.asked',
  'question.v2.rejected',
  'question.v2.replied',
  'reference.updated',
  'server.connected',
  'server.heartbeat',
  'server.instance.disposed',
  'session.compacted',
  'session.deleted',
  'session.diff',
  'session.updated',
  'todo.updated',
  'tui.command.execute',
  'tui.prompt.append',
  'tui.session.select',
  'tui.toast.show',
  'vcs.branch.updated',
  'workspace.failed',
  'workspace.ready',
  'workspace.status',
  'worktree.failed',
  'worktree.ready',
] as const;

/** The server's next protocol, told beside this one and in the same words. */
const NEXT_PROTOCOL = 'session.next.';

export type DomainEventType =
  | (typeof DOMAIN_EVENT_TYPES)[number]
  | `${typeof NEXT_PROTOCOL}${string}`;

const DOMAIN_EVENTS: ReadonlySet<string> = new Set(DOMAIN_EVENT_TYPES);

export function isDomainEvent(type: string): boolean {
  return DOMAIN_EVENTS.has(type) || type.startsWith(NEXT_PROTOCOL);
}
