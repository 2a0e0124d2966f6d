import { Agent, type RunContext, type Tool, tool, webSearchTool } from '@openai/agents';
import { z } from 'zod';
import type { Pace } from '../flow/pace.ts';
import type { Register } from './bookings.ts';
import { GUIDE, searchGuide } from './guide.ts';

/** What a run knows of its turn. Plain data: it is stored with a run that waits. */
export type DeskContext = {
  chatKey: string;
  /** The message that is answered, and the answer: another one each time somebody retries. */
  askedId: string;
  answerId: string;
};

type DeskOptions = {
  register: Register;
  /** Scripted tools take their time, so that a person sees them work. */
  pace?: Pace;
  /** Only OpenAI's own models have it. */
  canSearchWeb: boolean;
};

/** What is the desk's own: of these, a text is never an answer but says why there is none. */
export const DESK_TOOLS: ReadonlySet<string> = new Set([
  'search_guide',
  'open_archive',
  'find_bookings',
  'cancel_booking',
]);

const NEVER = new AbortController().signal;

/** A triage agent, and the two it hands over to. */
export function createDeskAgents({ register, pace, canSearchWeb }: DeskOptions) {
  const work = async (ms: number, details?: { signal?: AbortSignal }) =>
    pace?.wait(ms, details?.signal ?? NEVER);
  const errorFunction = (_: unknown, error: unknown) =>
    error instanceof Error ? error.message : 'The tool failed.';
  const chatOf = (run: RunContext<DeskContext> | undefined) => run?.context.chatKey ?? '';

  const searchTool = tool({
    name: 'search_guide',
    description: 'Searches the harbour guide. Gives the best matches with their sources.',
    parameters: z.object({ query: z.string().describe('A few keywords') }),
    errorFunction,
    async execute({ query }, _run, details) {
      await work(700, details);
      return { query, hits: searchGuide(query) };
    },
  });
  const archiveTool = tool({
    name: 'open_archive',
    description: 'Opens the full text behind an entry of the guide, by its id.',
    parameters: z.object({ id: z.string().describe('The id of an entry') }),
    errorFunction,
    async execute({ id }, _run, details) {
      await work(900, details);
      const entry = GUIDE.find((one) => one.id === id);
      if (!entry) throw new Error(`There is no entry called “${id}”.`);
      // Leaflets are in a cellar that nobody can be sent to.
      if ('url' in entry) return entry;
      throw new Error(`The archive that holds “${entry.filename}” did not answer in time.`);
    },
  });
  const findTool = tool({
    name: 'find_bookings',
    description: 'Lists all berths that the person has booked, with their numbers.',
    parameters: z.object({}),
    errorFunction,
    async execute(_input, run: RunContext<DeskContext> | undefined, details) {
      await work(600, details);
      return { bookings: register.all(chatOf(run)) };
    },
  });
  const cancelTool = tool({
    name: 'cancel_booking',
    description: 'Cancels a booking and refunds it. A person is asked before it happens.',
    parameters: z.object({ number: z.string().describe('Such as H-204') }),
    needsApproval: true,
    errorFunction,
    async execute({ number }, run: RunContext<DeskContext> | undefined, details) {
      await work(700, details);
      return register.cancel(chatOf(run), number);
    },
  });

  const researchTools: Tool<DeskContext>[] = [searchTool, archiveTool];
  if (canSearchWeb) researchTools.push(webSearchTool());

  const research = new Agent<DeskContext>({
    name: 'Research',
    handoffDescription: 'Looks things up about ports, the sea and its languages.',
    instructions: `You are the research desk of a Mediterranean harbour. Search the guide first${canSearchWeb ? ', and the web if the guide does not know' : ''}, then answer briefly in Markdown. Say so when you have found nothing.`,
    tools: researchTools,
  });
  const bookings = new Agent<DeskContext>({
    name: 'Bookings',
    handoffDescription: 'Lists, cancels and refunds berths that the person has booked.',
    instructions:
      'You are the booking desk of a Mediterranean harbour. Find the booking before you cancel it. Do not ask whether to cancel: the person is asked by the tool. Tell what was done, or that it was not allowed and why. Answer briefly in Markdown.',
    tools: [findTool, cancelTool],
  });
  return new Agent<DeskContext>({
    name: 'Triage',
    instructions:
      'You are the front desk of a Mediterranean harbour. Hand over to Research for questions, to Bookings for anything about berths and bookings. Answer only small talk yourself, in one or two sentences.',
    handoffs: [research, bookings],
  });
}
