import type { TurnCommand } from './log.ts';

type Result = IteratorResult<TurnCommand, undefined>;

const DONE: Result = { done: true, value: undefined };

/** Commands on their way to a turn's writer: each is given once, whether or not it came first. */
export class CommandQueue {
  #commands: TurnCommand[] = [];
  #readers: Array<(result: Result) => void> = [];
  #isEnded = false;

  push(command: TurnCommand): void {
    const reader = this.#readers.shift();
    if (reader) reader({ done: false, value: command });
    else this.#commands.push(command);
  }

  /** What was taken is still given; then reading ends. */
  end(): void {
    this.#isEnded = true;
    for (const reader of this.#readers.splice(0)) reader(DONE);
  }

  read(): AsyncIterableIterator<TurnCommand, undefined> {
    const own = new Set<(result: Result) => void>();
    let hasLeft = false;
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next: () => {
        if (hasLeft) return Promise.resolve(DONE);
        const value = this.#commands.shift();
        if (value) return Promise.resolve({ done: false, value });
        if (this.#isEnded) return Promise.resolve(DONE);
        return new Promise<Result>((resolve) => {
          const reader = (result: Result) => {
            own.delete(reader);
            resolve(result);
          };
          own.add(reader);
          this.#readers.push(reader);
        });
      },
      return: () => {
        hasLeft = true;
        // Nothing may be given to one that no longer listens.
        this.#readers = this.#readers.filter((reader) => !own.has(reader));
        for (const reader of own) reader(DONE);
        return Promise.resolve(DONE);
      },
    };
  }
}
