import type { ChatPart } from './chat-message.ts';

type NodeStatus = 'running' | 'complete' | 'skipped' | 'error';

export type Step = {
  key: string;
  node?: { id: string; status: NodeStatus; error?: string };
  parts: Array<{ part: ChatPart; index: number }>;
};

/** Parts come as one list; people see steps. A step begins with its marker and is named right behind it. */
export function toSteps(parts: readonly ChatPart[]): Step[] {
  const steps: Step[] = [];
  const begin = (index: number): Step => {
    const step: Step = { key: `step-${index}`, parts: [] };
    steps.push(step);
    return step;
  };
  for (const [index, part] of parts.entries()) {
    if (part.type === 'step-start') {
      begin(index);
    } else if (part.type === 'data-node') {
      const last = steps.at(-1);
      // A skipped node has no step of its own: it comes between two others.
      const step = last && !last.node && last.parts.length === 0 ? last : begin(index);
      const { nodeId: id, status, error } = part.data;
      step.node = { id, status, error };
    } else if (!part.type.startsWith('data-')) {
      (steps.at(-1) ?? begin(index)).parts.push({ part, index });
    }
  }
  return steps.filter((step) => step.node || step.parts.length > 0);
}
