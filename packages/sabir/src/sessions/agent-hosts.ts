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
  runner: AgentHost & {
    readonly isConnected: boolean;
    readonly isPresent: boolean;
    ended(turnId: string): void;
  };
  /** The agent in this process, made when it is first needed; undefined where only runners answer. */
  local?: () => AgentHost;
  /** The runner that a turn was given to, if it was given to one. */
  runnerOf(turnId: string): string | undefined;
  /** There is something to do, and no agent. */
  onWanted(): void;
};

/** Chooses who answers: the runner while one is connected, else the agent in this process. */
export function createAgentHosts({ runner, local, runnerOf, onWanted }: AgentHostsOptions) {
  let made: AgentHost | undefined;

  function chosen(): AgentHost {
    if (runner.isConnected || !local) return runner;
    made ??= local();
    return made;
  }

  /** Unless it has an agent, or a runner that has not said hello yet. */
  function call(): void {
    if (!local && !runner.isConnected) onWanted();
  }

  const session: UpstreamSession = {
    isClosed: false,
    prompt: (prompt, sink) => chosen().prompt(prompt, sink),
    attach(prompt, sink, written) {
      const isOfRunner = runnerOf(prompt.turnId) !== undefined;
      const turn = (isOfRunner ? runner : chosen()).attach(prompt, sink, written);
      call();
      return turn;
    },
    close: () => undefined,
  };

  return {
    session,
    get isReady(): boolean {
      return chosen().isReady;
    },
    /** There is an agent or a runner that takes prompts, though it may be busy. */
    get isPresent(): boolean {
      return local !== undefined || runner.isPresent;
    },
    get needsHistory(): boolean {
      return chosen().needsHistory;
    },
    call,
    ended: (turnId: string) => runner.ended(turnId),
    /** Called when a prompt can be taken that could not be before. */
    onReady: (): void => undefined,
    /** Called when the runner has gone. */
    onLost: (): void => undefined,
  };
}
