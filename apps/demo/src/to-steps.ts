import { getToolName, isToolUIPart } from 'ai';
import type { ChatPart, Question } from './chat-message.ts';

type NodeStatus = 'running' | 'complete' | 'skipped' | 'error';

export type Step = {
  key: string;
  /** A node of a flow. */
  node?: { id: string; status: NodeStatus; error?: string };
  /** An agent, and who handed over to it. */
  agent?: { name: string; from?: string };
  parts: Array<{
    part: ChatPart;
    index: number;
    /** What somebody was asked about this call. */
    question?: Question;
  }>;
};

/**
 * Parts come as one list; people see steps. A step begins with its marker and is named right behind
 * it. An agent is named once, and has every step up to the next name.
 */
export function toSteps(parts: readonly ChatPart[]): Step[] {
  const steps: Step[] = [];
  const questions = toQuestions(parts);
  const calls = new Set(parts.flatMap((part) => (isToolUIPart(part) ? part.toolCallId : [])));
  /** Nothing waits for the answer but the agent itself. */
  const isOfNoCall = (part: ChatPart) =>
    part.type === 'data-question' && !calls.has(part.data.toolCallId ?? '');
  const begin = (index: number): Step => {
    const step: Step = { key: `step-${index}`, parts: [] };
    steps.push(step);
    return step;
  };
  /** A skipped node has no step of its own: it comes between two others. */
  const beginNamed = (index: number): Step => {
    const last = steps.at(-1);
    const isFree = last && !last.node && !last.agent && last.parts.length === 0;
    return isFree ? last : begin(index);
  };
  for (const [index, part] of parts.entries()) {
    if (part.type === 'step-start') {
      if (!steps.at(-1)?.agent) begin(index);
    } else if (part.type === 'data-node') {
      const { nodeId: id, status, error } = part.data;
      beginNamed(index).node = { id, status, error };
    } else if (part.type === 'data-agent') {
      beginNamed(index).agent = part.data;
    } else if (!isSilent(part) || isOfNoCall(part)) {
      const question = isToolUIPart(part) ? questions.get(part.toolCallId) : undefined;
      const step = steps.at(-1) ?? begin(index);
      step.parts.push({ part, index, ...(question && { question }) });
    }
  }
  return steps.filter((step) => step.node || step.agent || step.parts.length > 0);
}

/**
 * What is shown elsewhere: a handoff by the name of the next agent, a question at its call, sources
 * below the answer.
 */
function isSilent(part: ChatPart): boolean {
  if (isToolUIPart(part)) return getToolName(part).startsWith('transfer_to_');
  return part.type.startsWith('data-') || part.type.startsWith('source-');
}

function toQuestions(parts: readonly ChatPart[]): Map<string | undefined, Question> {
  return new Map(
    parts.flatMap((part) =>
      part.type === 'data-question' ? [[part.data.toolCallId, part.data] as const] : [],
    ),
  );
}
