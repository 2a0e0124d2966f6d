/**
 * Compares what becomes of runs of the OpenAI Agents SDK in a chat: with our source, and with the
 * SDK's own helper. Prints the table of docs/OPENAI-AGENTS-COMPARISON.md; fails if ours loses
 * anything that the table asks for.
 */
import { compareWithOfficialHelper } from './openai-agents-comparison/page.ts';

const { table, lost } = await compareWithOfficialHelper();
console.log(table);
if (lost.length > 0) console.error(`Sabir loses: ${lost.join('; ')}.`);
process.exit(lost.length > 0 ? 1 : 0);
