/** Whether what somebody has at the end is what the agent said. */
import type { Chunk } from '../../src/core/chunks.ts';
import type { UIMessage } from '../../src/core/message.ts';
import { areClosings } from '../../src/turns/chunk-bytes.ts';
import { comparable } from '../comparable.ts';
import type { TruePart } from './script.ts';
import type { Seen } from './viewer.ts';

type SeenPart = TruePart & { isPartial?: boolean };

/** Where a call stands that was not made to its end. */
const DONE = 'output-available';

/** Its words, calls and questions; what else there is in a message is only compared with others'. */
function partsOf({ parts }: UIMessage): SeenPart[] {
  return (parts as Record<string, unknown>[]).flatMap((part): SeenPart[] => {
    const { type, text, toolCallId, state, input, output, data, toolName } = part;
    if (type === 'text' || type === 'reasoning') return [{ type, text: String(text) }];
    if (type === 'data-question') {
      const { questionId, answer } = data as { questionId: string; answer: unknown };
      return [{ type: 'question', questionId, answer }];
    }
    if (typeof toolCallId !== 'string') return [];
    const name = String(toolName ?? String(type).replace(/^tool-/, ''));
    const call = { type: 'tool' as const, callId: toolCallId, toolName: name, input, output };
    return [state === DONE ? call : { ...call, isPartial: true }];
  });
}

/** Where it is not what the agent said; nothing if it is. */
export function differenceFrom(truth: TruePart[], message: UIMessage): string | undefined {
  const parts = partsOf(message);
  for (let i = 0; i < Math.max(truth.length, parts.length); i++) {
    const difference = differenceOf(truth[i], parts[i]);
    if (difference) return `part ${i}: ${difference}`;
  }
  return undefined;
}

function differenceOf(said: TruePart | undefined, seen: SeenPart | undefined): string | undefined {
  if (!said) return `a ${seen?.type} that was not said`;
  if (!seen) return `no ${said.type}`;
  if ('text' in said && 'text' in seen && said.type === seen.type) {
    return said.text === seen.text ? undefined : describeTexts(said.text, seen.text);
  }
  if (JSON.stringify(sorted(said)) === JSON.stringify(sorted(seen))) return undefined;
  return `said ${JSON.stringify(said)}, seen ${JSON.stringify(seen)}`;
}

/** A turn that was broken off: what there is must be how the agent began. */
export function differenceFromBeginning(truth: TruePart[], message: UIMessage): string | undefined {
  const parts = partsOf(message);
  for (const [i, seen] of parts.entries()) {
    const said = truth[i];
    const isLast = i === parts.length - 1;
    const difference =
      said && isBeginning(said, seen, isLast) ? undefined : differenceOf(said, seen);
    if (difference) return `part ${i}: ${difference}`;
  }
  return undefined;
}

function isBeginning(said: TruePart, seen: SeenPart, isLast: boolean): boolean {
  if ('text' in said && 'text' in seen) {
    return said.type === seen.type && isLast && said.text.startsWith(seen.text);
  }
  // An answer that was given may not have been told any more; a call may not have been made.
  if (said.type === 'question' && seen.type === 'question') {
    return said.questionId === seen.questionId && (seen.answer === undefined || isLast);
  }
  if (said.type !== 'tool' || seen.type !== 'tool') return false;
  return said.callId === seen.callId && said.toolName === seen.toolName && seen.isPartial === true;
}

/** Whether all who were told have the very same; nothing if so. */
export function disagreement(seen: Pick<Seen, 'name' | 'message'>[]): string | undefined {
  const [first, ...others] = seen;
  if (!first) return undefined;
  const expected = JSON.stringify(toCompare(first.message));
  const other = others.find(({ message }) => JSON.stringify(toCompare(message)) !== expected);
  if (!other) return undefined;
  const [one, two] = [first, other].map(({ message }) => toCompare(message)) as object[];
  return `${first.name} and ${other.name} differ: ${describe(one, two)}`;
}

/** Without what the AI SDK's client, and it alone, keeps of arguments that were broken off. */
function toCompare(message: UIMessage | undefined): unknown {
  const parts = message?.parts.map((part) => ({ ...part, rawInput: undefined }));
  return sorted(comparable(message && ({ ...message, parts } as UIMessage)));
}

/**
 * Where a gateway's replica is not the session's own log, chunk for chunk; nothing if it is. A gateway that ended the turn
 * by itself, as one does that cannot reach the session, has a beginning of it and its own closings.
 */
export function replicaDifference(
  session: Chunk[],
  replica: Chunk[],
  isEndedByGateway: boolean,
): string | undefined {
  const toText = (chunk: Chunk | undefined) => JSON.stringify(sorted(chunk));
  let at = 0;
  while (at < replica.length && toText(replica[at]) === toText(session[at])) at++;
  const isWhole = at === replica.length && at === session.length;
  if (isWhole || (isEndedByGateway && areClosings(replica.slice(at)))) return undefined;
  const lengths = `${session.length} in the session, ${replica.length} in the replica`;
  return `chunk ${at + 1} (${lengths}): ${toText(session[at])} / ${toText(replica[at])}`;
}

function describe(one: unknown, two: unknown, path = ''): string {
  if (typeof one === 'string' && typeof two === 'string') {
    return `${path}: ${describeTexts(one, two)}`;
  }
  if (one && two && typeof one === 'object' && typeof two === 'object') {
    for (const key of new Set([...Object.keys(one), ...Object.keys(two)])) {
      const [left, right] = [one, two].map((value) => (value as Record<string, unknown>)[key]);
      if (JSON.stringify(left) !== JSON.stringify(right)) {
        return describe(left, right, path ? `${path}.${key}` : key);
      }
    }
  }
  return `${path}: ${JSON.stringify(one)} / ${JSON.stringify(two)}`.slice(0, 600);
}

function describeTexts(said: string, seen: string): string {
  let at = 0;
  while (at < said.length && said[at] === seen[at]) at++;
  const from = Math.max(0, at - 20);
  const quote = (text: string) => JSON.stringify(text.slice(from, at + 40));
  return `at ${at} of ${said.length}: said ${quote(said)}, seen (${seen.length}) ${quote(seen)}`;
}

/** The order of keys says nothing. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!value || typeof value !== 'object') return value;
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  entries.sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, one]) => [key, sorted(one)]));
}
