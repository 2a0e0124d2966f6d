/** Loads the files of `src` that are named, and prints the addresses of all modules that came along. */
import { registerHooks } from 'node:module';

const loaded: string[] = [];
registerHooks({
  load(url, context, next) {
    loaded.push(url);
    return next(url, context);
  },
});
for (const file of process.argv.slice(2))
  await import(new URL(`../src/${file}`, import.meta.url).href);
process.stdout.write(JSON.stringify(loaded));
