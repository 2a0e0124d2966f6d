/** What an event on a session's socket means for the turn that answers our prompt. */
export type Match =
  /** Our turn begins. */
  | 'begun'
  /** Of our turn, or of no turn at all. */
  | 'ours'
  /** Our prompt waits in the server's queue. */
  | 'queued'
  /** Our turn is over, and the server says that of this turn. */
  | 'ended'
  /** Our turn is over: it failed, or the runner stopped. More may follow about its end. */
  | 'cut'
  /** The agent worked on our prompt and is done, though it announced no turn. */
  | 'unannounced'
  /** The runner is idle though our turn has not begun: it may be the late end of another turn. */
  | 'doubtful'
  /** The server has gone on to another turn on our channel. */
  | 'overtaken'
  /** The server's queue has changed. */
  | 'queue'
  /** A prompt that was stopped and given up begins after all. */
  | 'unwanted-begun'
  /** The turn of such a prompt is over. */
  | 'unwanted-ended'
  /** Of another turn. */
  | 'other';
