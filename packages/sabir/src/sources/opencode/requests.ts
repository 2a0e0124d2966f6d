/** What OpenCode asks people, in words: the same for the translator and for the agent. */
import type { OpenCodePermission, OpenCodeQuestion } from './events.ts';

export const ALLOW_ONCE = 'Allow once';
export const ALWAYS_ALLOW = 'Always allow';
const DENY = 'Deny';

/** The words for each reply to a permission. */
export const PERMISSION_ANSWERS = {
  once: ALLOW_ONCE,
  always: ALWAYS_ALLOW,
  reject: DENY,
} as const;

export type PermissionReply = keyof typeof PERMISSION_ANSWERS;

type AskedQuestion = { questionId: string; text: string; options?: string[] };

export type OpenCodeRequest = {
  requestId: string;
  kind: 'permission' | 'question';
  /** One for a permission; the question tool may ask several at once. */
  questions: AskedQuestion[];
  /** The call of the answer that waits for it; of a subagent's request, the call that started it. */
  callId?: string;
};

const VERBS: Readonly<Record<string, string>> = {
  bash: 'Run this command?',
  edit: 'Change this file?',
  read: 'Read this file?',
  webfetch: 'Fetch this address?',
  websearch: 'Search the web for this?',
  task: 'Start this subagent?',
  external_directory: 'Reach outside the project?',
  doom_loop: 'The same call again and again: go on?',
};

export function fromPermission(
  { id, permission, patterns, metadata }: OpenCodePermission,
  callId: string | undefined,
): OpenCodeRequest {
  // The patterns of a command are its pieces; the command itself is what a person has to see.
  const command = metadata?.command;
  const what = typeof command === 'string' ? command : patterns.join('\n');
  const verb = VERBS[permission] ?? `Allow ${permission}?`;
  const text = what === '' || what === '*' ? verb : `${verb}\n\n${what}`;
  const options = Object.values(PERMISSION_ANSWERS);
  return {
    requestId: id,
    kind: 'permission',
    questions: [{ questionId: id, text, options }],
    ...(callId !== undefined && { callId }),
  };
}

export function fromQuestion(
  { id, questions }: OpenCodeQuestion,
  callId: string | undefined,
): OpenCodeRequest {
  return {
    requestId: id,
    kind: 'question',
    questions: questions.map(({ question, options = [] }, at) => ({
      questionId: questions.length === 1 ? id : `${id}-${at + 1}`,
      text: question,
      ...(options.length > 0 && { options: options.map(({ label }) => label) }),
    })),
    ...(callId !== undefined && { callId }),
  };
}
