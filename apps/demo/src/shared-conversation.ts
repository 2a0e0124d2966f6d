import type { ChatMessage } from './chat-message.ts';

/** A server that cannot be asked for the history must not keep the page from showing its own copy. */
const HISTORY_MS = 5_000;

/** A conversation that the server remembers, and that any window of this browser may be in. */
export class SharedConversation {
  /** Where the server has it. */
  readonly address: string;
  #windows: BroadcastChannel;

  constructor(address: string) {
    this.address = address;
    this.#windows = new BroadcastChannel(this.address);
  }

  /** What the server knows of this conversation, without the answer that is being written. */
  async history(leaving: AbortSignal): Promise<ChatMessage[]> {
    const signal = AbortSignal.any([leaving, AbortSignal.timeout(HISTORY_MS)]);
    const response = await fetch(`${this.address}/messages`, { signal });
    return response.ok ? response.json() : [];
  }

  /** Tells the others that something was asked. Too early, and there is nothing to watch yet. */
  tellAsked(): void {
    this.#windows.postMessage('asked');
  }

  onAskedElsewhere(callback: () => void, signal: AbortSignal): void {
    this.#windows.addEventListener('message', callback, { signal });
  }
}
