import { createFlowRuntime } from 'sabir/open-harness/runtime';
import type { Model, PersonRequest } from './model.ts';
import type { NodeContext } from './node-context.ts';
import { createPace } from './pace.ts';
import { runAgent } from './run-agent.ts';
import { RESEARCH_TOOLS } from './tools.ts';

const FLOW_NAME = 'research-desk';

/** What each agent hands to the next. */
type Baton = { person: PersonRequest; research?: string; draft?: string };

const SYSTEM = {
  researcher:
    'You are the researcher of a small editorial team. Look things up with your tools, at most three calls, then say in two or three short sentences what you found. If a source fails, say so and go on.',
  writer:
    'You are the writer of a small editorial team. Answer the person from the research you are given, in Markdown, with short headings, in at most 250 words. Use a list, a table or a code block where it helps.',
  reviewer:
    'You are the reviewer of a small editorial team. Check the draft against the research and the question. Give a verdict in bold, then at most three short remarks. Do not rewrite the draft.',
};

/** Three agents, one after another. One runtime is one run, so every turn makes its own. */
export function createDemoFlow({ model, speed }: { model: Model; speed?: number }) {
  const pace = createPace(speed);
  return createFlowRuntime({
    name: FLOW_NAME,
    nodes: {
      researcher: async (context: NodeContext): Promise<Baton> => {
        const person = context.input as PersonRequest;
        const research = await runAgent(context, model, pace, {
          agent: 'researcher',
          person,
          system: SYSTEM.researcher,
          prompt: person.message,
          tools: RESEARCH_TOOLS,
        });
        return { person, research };
      },
      writer: async (context: NodeContext): Promise<Baton> => {
        const { person, research } = context.input as Baton;
        const draft = await runAgent(context, model, pace, {
          agent: 'writer',
          person,
          system: SYSTEM.writer,
          prompt: `The person asked:\n${person.message}\n\nThe research:\n${research}`,
        });
        return { person, research, draft };
      },
      reviewer: async (context: NodeContext): Promise<{ verdict: string }> => {
        const { person, research, draft } = context.input as Baton;
        const verdict = await runAgent(context, model, pace, {
          agent: 'reviewer',
          person,
          system: SYSTEM.reviewer,
          prompt: `The person asked:\n${person.message}\n\nThe research:\n${research}\n\nThe draft:\n${draft}`,
        });
        return { verdict };
      },
    },
    edges: [
      { from: 'researcher', to: 'writer' },
      { from: 'writer', to: 'reviewer' },
    ],
  });
}
