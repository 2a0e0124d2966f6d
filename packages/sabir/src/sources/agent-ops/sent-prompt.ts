import type { Channel } from '../../core/translator.ts';
import type { Place, SessionStatus } from './events.ts';

export type ExpectedPrompt = {
  /** By which the server's echo of the prompt is known. Without it any message may be the echo. */
  content?: string | undefined;
  /** Default: the turn may be on any channel. */
  channel?: Channel | undefined;
  /** Where the turn is known already. */
  turnId?: string | undefined;
};

/** A prompt at the server: whether it waits in the queue, and which turn answers it. */
export class SentPrompt {
  readonly content: string | undefined;
  readonly #channel: Channel | undefined;
  turnId: string | undefined;
  /** The prompt's own id, as the agent names it while it works. */
  id: string | undefined;
  /** The server has shown the prompt: what was under way before it is settled. */
  isShown = false;
  /** The server shows the prompt as pending, and as a message only when the runner gets it. */
  isKept = false;
  /** How many prompts leave the server's queue until this one has; undefined if it never waited. */
  queued: number | undefined;
  /** Its place in the queue is void: the next turn may be its own. */
  isQueueLost = false;
  /** There is no runner yet. */
  isWaking = false;
  /** The runner went away: the server sends the prompt again, and another turn answers it. */
  isOrphaned = false;
  /** An agent works, and no other turn is known to run. */
  isWorkedOn = false;
  /** It was shown, then an agent worked: a prompt that the server queues now is another. */
  isDispatched = false;

  constructor({ content, channel, turnId }: ExpectedPrompt) {
    this.content = content;
    this.#channel = channel;
    this.turnId = turnId;
  }

  get isBegun(): boolean {
    return this.turnId !== undefined;
  }

  /** It waits behind other prompts. */
  get isQueued(): boolean {
    return !this.isBegun && !!this.queued && !this.isQueueLost;
  }

  get isWaiting(): boolean {
    return this.isBegun ? this.isOrphaned : this.isQueued || this.isWaking;
  }

  isHere({ channelType, channelId }: Place): boolean {
    const channel = this.#channel;
    if (!channel) return true;
    const isType = channelType == null || channelType === channel.channelType;
    return isType && (channelId == null || channelId === channel.channelId);
  }

  /** No id stands for the turn that is open. */
  isTurn(id: unknown): boolean {
    if (!this.isBegun || (id != null && id !== this.turnId)) return false;
    if (id != null) this.isOrphaned = false;
    return true;
  }

  /** Whether the next turn is this prompt's; `othersAsked` prompts were shown and have not begun. */
  isNext(othersAsked: number): boolean {
    if (this.isBegun) return this.isOrphaned;
    if (this.queued !== undefined) return this.queued <= 0 || this.isQueueLost;
    return this.isShown || othersAsked === 0;
  }

  /** It has left the queue, or only it was shown: a prompt sent before it will not begin any more. */
  isAfter(earlier: SentPrompt): boolean {
    return this.queued === 0 || (this.isShown && !earlier.isShown);
  }

  /** The server queues a prompt: this one, unless it waits already or an agent works on it. */
  joinQueue({ queuePosition, queueReason }: SessionStatus, isRunnerThere: boolean): void {
    if (this.isBegun || this.queued !== undefined || this.isDispatched) return;
    // Nothing runs while the runner is still to come: the first prompt leaves without notice.
    this.isWaking = queueReason === 'waking' || !isRunnerThere;
    const position = typeof queuePosition === 'number' ? queuePosition : 1;
    this.queued = this.isWaking ? position - 1 : position;
    this.isWorkedOn = false;
  }

  /** A prompt has left the server's queue. */
  advance({ remaining }: SessionStatus): void {
    this.isWaking = false;
    if (this.queued) this.queued = remaining === 0 ? 0 : this.queued - 1;
  }
}
