import { createOpenHarnessHandler } from 'sabir/open-harness';
import { createRuntime } from '../../../../flow/create-runtime.ts';

export const POST = createOpenHarnessHandler(() => createRuntime());
