import { join } from 'node:path';
import { buildPage } from '../build-page.ts';

/** The script of the page, as text, with React as developers run it, which is the one that warns. */
export function buildHookPage(): Promise<string> {
  return buildPage(join(import.meta.dirname, 'page.tsx'), { mode: 'development' });
}
