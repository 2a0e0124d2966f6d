const MAX_IDS = 1_000;

/** The turns on a session's socket that are not ours: which are known, and whether one runs. */
export class OtherTurns {
  /** Of turns and prompts, also of those that are over; the oldest are forgotten. */
  #ids = new Set<unknown>();
  /** The turn that runs on our channel; null if it has no name. */
  #running: unknown;
  #isElsewhere = false;

  /** One runs on our channel. */
  get isHere(): boolean {
    return this.#running !== undefined;
  }

  /** One runs, on any channel. */
  get isAny(): boolean {
    return this.isHere || this.#isElsewhere;
  }

  has(id: unknown): boolean {
    return this.#ids.has(id);
  }

  add(id: unknown): void {
    if (typeof id !== 'string' || this.has(id)) return;
    if (this.#ids.size >= MAX_IDS) this.#ids.delete(this.#ids.values().next().value);
    this.#ids.add(id);
  }

  begin(id: unknown, isHere: boolean): void {
    this.add(id);
    if (isHere) this.#running = id ?? null;
    else this.#isElsewhere = true;
  }

  /** No id stands for the turn that runs. */
  end(id?: unknown): void {
    this.add(id);
    this.#isElsewhere = false;
    if (id == null || this.#running === null || id === this.#running) this.#running = undefined;
  }
}
