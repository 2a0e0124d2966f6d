/** The releases of the Agents SDK that the tests run: the newest, and one that people still have. */
import * as newest from '@openai/agents';
import * as older from 'openai-agents-v0-8';

export type Sdk = typeof newest;

for (const sdk of [newest, older]) sdk.setTracingDisabled(true);

export const SDKS: ReadonlyArray<{ version: string; sdk: Sdk }> = [
  { version: '0.20', sdk: newest },
  { version: '0.8', sdk: older as unknown as Sdk },
];
