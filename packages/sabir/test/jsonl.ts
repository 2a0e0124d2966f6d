import { existsSync, readFileSync, writeFileSync } from 'node:fs';

export function readJsonl(path: URL): unknown[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/** A recorded expectation: written when it is missing or `UPDATE_FIXTURES` is set, else read. */
export function readOrWriteJsonl(path: URL, actual: unknown[]): unknown[] {
  if (process.env.UPDATE_FIXTURES || !existsSync(path)) {
    if (process.env.CI) throw new Error(`${path.pathname} is missing`);
    writeFileSync(path, actual.map((value) => `${JSON.stringify(value)}\n`).join(''));
  }
  return readJsonl(path);
}
