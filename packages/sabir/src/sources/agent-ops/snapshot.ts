import type { Loose } from '../../core/loose.ts';
import type { Usage } from '../../core/outcome.ts';
import { isCallState } from './calls.ts';
import type { AgentOpsQuestion, MessagePart, SessionMessage } from './events.ts';
import type { Problem } from './outcomes.ts';
import { isData, isFile, isSource } from './part-shapes.ts';

/** What a snapshot says. */
type Snapshot = {
  /** In the order of its parts. */
  content: MessagePart[];
  isOver: boolean;
  reason: unknown;
  /** The first error. */
  problem: Problem | undefined;
  usage: Usage | undefined;
  /** False if there are parts that are not what they should be. */
  isSound: boolean;
};

const hasText = ({ text }: Loose) => typeof text === 'string';
const isNamed = (id: unknown) => typeof id === 'string' && id !== '';

const QUESTION_STATES: ReadonlySet<unknown> = new Set<AgentOpsQuestion['status']>([
  'open',
  'answered',
  'expired',
  'withdrawn',
]);

/** What content there is, and when it is sound. */
const CONTENT = new Map<unknown, (part: Loose) => boolean>([
  ['text', hasText],
  ['tool-call', isCallState],
]);
/** What only our own server has; of others it is something else under the same name. */
const LINKED_CONTENT = new Map<unknown, (part: Loose) => boolean>([
  ...CONTENT,
  ['reasoning', hasText],
  ['step', () => true],
  ['source', isSource],
  ['file', isFile],
  ['data', isData],
  ['question', ({ questionId, status }) => isNamed(questionId) && QUESTION_STATES.has(status)],
]);

/** Whether a message is of a server that says what it answers: our own. */
export function isLinked({ promptId }: SessionMessage): boolean {
  return isNamed(promptId);
}

/** Undefined where the message is not a turn: its `parts` are an object then. */
export function readSnapshot(message: SessionMessage): Snapshot | undefined {
  const { content, parts } = message;
  const snapshot: Snapshot = {
    content: [],
    isOver: false,
    reason: undefined,
    problem: undefined,
    usage: undefined,
    isSound: true,
  };
  if (!Array.isArray(parts)) {
    if (parts !== undefined && parts !== null) return undefined;
    if (typeof content === 'string') snapshot.content.push({ type: 'text', text: content });
    return snapshot;
  }
  const shapes = isLinked(message) ? LINKED_CONTENT : CONTENT;
  for (const part of parts as unknown[]) {
    const said = (part ?? {}) as Loose;
    const { type } = said;
    const isSound = shapes.get(type);
    if (isSound?.(said)) snapshot.content.push(part as MessagePart);
    else if (isSound || typeof type !== 'string') snapshot.isSound = false;
    else if (type === 'finish') {
      snapshot.isOver = true;
      snapshot.reason = said.reason;
    } else if (type === 'error') snapshot.problem ??= { cause: said.message, code: said.code };
    else if (type === 'usage' && isLinked(message)) snapshot.usage = said.usage as Usage;
  }
  if (snapshot.isOver && !isLinked(message)) dropOverwritten(snapshot);
  return snapshot;
}

/**
 * One release writes the last text into every text part when the turn ends. Texts that are all the
 * same are said once, in the place of the last; the others keep their place, with nothing in it.
 */
function dropOverwritten(snapshot: Snapshot): void {
  const texts = snapshot.content.filter((part) => part.type === 'text');
  const last = texts.at(-1);
  if (!last || texts.some(({ text }) => text !== last.text)) return;
  snapshot.content = snapshot.content.map((part) =>
    part.type === 'text' && part !== last ? { type: 'text', text: '' } : part,
  );
}

/** The texts of snapshots, said once: owns what was said of each text part. */
export function createSnapshotTexts() {
  const said: string[] = [];
  return {
    /** What is new in the text part at this place among the texts; `isOpen` if it can still grow. */
    news(place: number, text: string, isOpen: boolean): string {
      const before = said[place];
      if (before === undefined) {
        said[place] = text;
        return text;
      }
      const isGrown = isOpen && place === said.length - 1 && text.startsWith(before);
      if (!isGrown) return '';
      said[place] = text;
      return text.slice(before.length);
    },
  };
}
