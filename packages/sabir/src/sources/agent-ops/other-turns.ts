const MAX_IDS = 1_000;

/** The turns on a session's socket that are not ours: which are known, and whether one runs. */
export class OtherTurns {
  /** Of turns and prompts, also of those that are over; the oldest are forgotten. */
  #ids = new Set<string>();
  /** The turn that runs on our channel; null if it has no name. */
  #running: string | null | undefined;
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
    return this.#ids.has(id as string);
  }

  add(id: unknown): void {
    if (typeof id !== 'string' || this.#ids.has(id)) return;
    if (this.#ids.size >= MAX_IDS) this.#ids.delete(this.#ids.values().next().value as string);
    this.#ids.add(id);
  }

  begin(id: unknown, isHere: boolean): void {
    this.add(id);
    if (isHere) this.#running = typeof id === 'string' ? id : null;
    else this.#isElsewhere = true;
  }

  /** A part arrived. A turn that is known already was announced, or is over. */
  note(id: unknown, isHere: boolean): void {
    if (!this.has(id)) this.begin(id, isHere);
  }

  /** No id stands for the turn that runs. */
  end(id: unknown): void {
    this.add(id);
    this.#isElsewhere = false;
    if (id == null || this.#running === null || id === this.#running) this.#running = undefined;
  }

  forget(): void {
    this.end(undefined);
  }
}
