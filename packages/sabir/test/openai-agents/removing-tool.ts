import { z } from 'zod';
import type { Sdk } from './sdks.ts';

/** A tool that may not do what it is for until somebody has allowed it, and tells what it did. */
export function removingTool(sdk: Sdk, removed: string[], name = 'remove') {
  return sdk.tool({
    name,
    description: 'Removes a file.',
    parameters: z.object({ path: z.string() }),
    needsApproval: true,
    execute: async ({ path }) => {
      removed.push(path);
      return `${path} is gone`;
    },
  });
}
