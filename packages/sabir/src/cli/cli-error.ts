/** Something that whoever typed the command can put right: they are told this, and no stack. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(
    message: string,
    { exitCode = 1, cause }: { exitCode?: number; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.name = 'CliError';
    this.exitCode = exitCode;
  }
}

/** The command itself is wrong, not what it met. */
export function usageError(message: string): CliError {
  return new CliError(message, { exitCode: 2 });
}
