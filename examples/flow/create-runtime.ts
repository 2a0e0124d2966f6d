/**
 * The flow behind every example: it thinks, calls a tool, and answers with the person's own words.
 * No model, no key, no network. In your application this is where your agent stands.
 */
import { setTimeout } from 'node:timers/promises';
import { createFlowRuntime, type FlowNode, type FlowRuntime } from 'sabir/open-harness/runtime';

const WORD_MS = 40;

/** One runtime is one run, so a server makes a new one for every message. */
export function createRuntime(): FlowRuntime {
  return createFlowRuntime({ name: 'counting', nodes: { counter } });
}

const counter: FlowNode = async ({ input, signal, emit }) => {
  const { message } = input as { message: string };
  // A model's client would take this signal, and stop costing money when it fires.
  signal.addEventListener('abort', () => console.log('The run was stopped.'), { once: true });

  const speak = async (type: 'agent:thinking' | 'agent:text', content: string) => {
    for (const word of content.match(/\s*\S+/g) ?? []) {
      await setTimeout(WORD_MS, undefined, { signal });
      emit({ type: `${type}:delta`, content: word });
    }
    emit({ type, content });
  };

  emit({ type: 'agent:start', prompt: message });
  await speak('agent:thinking', 'Somebody wrote to me. I had better count before I answer.');
  const count = countWords(message);
  emit({
    type: 'agent:tool',
    toolName: 'countWords',
    toolInput: { text: message },
    toolOutput: { count },
  });
  const answer = `You wrote “${message}”. Words counted: ${count}.`;
  await speak('agent:text', answer);
  emit({ type: 'agent:complete', result: answer });
  return answer;
};

function countWords(text: string): number {
  return text.split(/\s+/).filter(Boolean).length;
}
