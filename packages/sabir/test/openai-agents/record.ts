import {
  createOpenAIAgentsTranslator,
  type RunStreamEvent,
} from '../../src/sources/openai-agents/index.ts';
import { createRuns, decide } from './play-scenario.ts';
import type { Scenario } from './scenario-tools.ts';
import type { Sdk } from './sdks.ts';

/** Agents know each other, so that JSON cannot carry them; of an output it would make a text. */
function copyOf(event: RunStreamEvent): unknown {
  if ('agent' in event) return { ...event, agent: { name: event.agent.name } };
  if (!('item' in event) || !('output' in event.item)) return event;
  return {
    ...event,
    item: { ...JSON.parse(JSON.stringify(event.item)), output: event.item.output },
  };
}

type ThrownError = Error & { refusal?: string; error?: ThrownError };

function copyOfError({ name, message, refusal, error }: ThrownError): object {
  return { name, message, refusal, ...(error && { error: copyOfError(error) }) };
}

/** Everything that the runs of a scenario stream, as the lines of a fixture. */
export async function record(sdk: Sdk, scenario: Scenario): Promise<unknown[]> {
  const { agent, start } = createRuns(sdk, scenario);
  const answers = [...(scenario.answers ?? [])];
  const options = { agent: agent.name, ...scenario.options };
  const translator = createOpenAIAgentsTranslator(options);
  const steps: unknown[] = [{ options }];
  const push = (event: unknown) => {
    steps.push(event);
    translator.push(event);
  };
  try {
    for (let state: unknown; ; ) {
      const run = await start(state);
      for await (const event of run) push(copyOf(event as RunStreamEvent));
      await run.completed;
      const { interruptions } = run;
      if (interruptions.length === 0) break;
      state = run.state;
      push({ type: 'run_interrupted', interruptions });
      for (const { item, answer } of decide(state, answers)) {
        const approvalId = translator.approvalIdsOf([item])[0] as string;
        if (answer === 'expired') push({ type: 'approval_expired', approvalId });
        else push({ type: 'approval_answered', approvalId, ...answer });
      }
    }
    steps.push({ end: { status: 'finished' } });
  } catch (error) {
    steps.push({ end: { status: 'failed' }, error: copyOfError(error as ThrownError) });
  }
  return JSON.parse(JSON.stringify(steps));
}
