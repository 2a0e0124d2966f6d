import type {
  Prompt,
  TurnSink,
  UpstreamSession,
  UpstreamTurn,
  Written,
} from '../turns/upstream.ts';

/** What answers the prompts of a session: an agent in this process, or a runner that has connected. */
export interface AgentHost {
  /** It would take a prompt now. */
  readonly isReady: boolean;
  /** It wants to be given what was said before. */
  readonly needsHistory: boolean;
  prompt(prompt: Prompt, sink: TurnSink): UpstreamTurn;
  /** Goes on with the turn of a process that ended. */
  attach(prompt: Prompt, sink: TurnSink, written: Written): UpstreamTurn;
}

export type AgentHosts = ReturnType<typeof createAgentHosts>;

type AgentHostsOptions = {
  runner: AgentHost & { readonly isConnected: boolean };
  /** The agent in this process, made when it is first needed; undefined where only runners answer. */
  local?: () => AgentHost;
  /** There is something to do, and no agent. */
  onWanted(): void;
};

/** Chooses who answers: the runner while one is connected, else the agent in this process. */
export function createAgentHosts({ runner, local, onWanted }: AgentHostsOptions) {
  let made: AgentHost | undefined;

  function chosen(): AgentHost {
    if (runner.isConnected || !local) return runner;
    made ??= local();
    return made;
  }

  const session: UpstreamSession = {
    isClosed: false,
    prompt: (prompt, sink) => chosen().prompt(prompt, sink),
    attach: (prompt, sink, written) => chosen().attach(prompt, sink, written),
    close: () => undefined,
  };

  return {
    session,
    get isReady(): boolean {
      return chosen().isReady;
    },
    /** There is an agent or a runner, though it may be busy. */
    get isPresent(): boolean {
      return local !== undefined || runner.isConnected;
    },
    get needsHistory(): boolean {
      return chosen().needsHistory;
    },
    call: onWanted,
    /** Called when a prompt can be taken that could not be before. */
    onReady: (): void => undefined,
  };
}
