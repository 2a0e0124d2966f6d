import type { OpenCodeApi } from '../../src/sources/opencode/api.ts';
import type { ModelAnswer } from './scripted-model.ts';

export type RecordedEvent = {
  type: string;
  properties: { sessionID?: string; id?: string; delta?: string; status?: { type: string } };
};

export type Scenario = {
  name: string;
  model: ModelAnswer[];
  /** What somebody does about an event. */
  react?: (
    event: RecordedEvent,
    api: OpenCodeApi,
    sessionId: string,
  ) => Promise<unknown> | undefined;
  /** What the subagent's model says. */
  errand?: ModelAnswer[];
};

const BASH = {
  id: 'bash-1',
  name: 'bash',
  input: { command: 'echo hi', description: 'Says hi' },
};
const READ = { id: 'read-1', name: 'read', input: { filePath: 'hello.txt' } };
const ERRAND = 'Do the errand';

function reply(how: 'once' | 'reject'): Scenario['react'] {
  return ({ type, properties: { id = '' } }, api) =>
    type === 'permission.asked' ? api.replyToPermission(id, how) : undefined;
}

export const SCENARIOS: Scenario[] = [
  { name: 'text', model: [{ text: ['Hel', 'lo ', 'there.'] }] },
  {
    name: 'reasoning-and-tool',
    model: [
      { reasoning: ['I should ', 'look.'], text: ['Looking.'], calls: [READ] },
      { text: ['It says ', 'hello.'] },
    ],
  },
  {
    name: 'permission-allowed',
    model: [{ text: ['Running.'], calls: [BASH] }, { text: ['It ran.'] }],
    react: reply('once'),
  },
  {
    name: 'permission-denied',
    model: [{ text: ['Running.'], calls: [BASH] }, { text: ['It ran.'] }],
    react: reply('reject'),
  },
  {
    name: 'permission-open-when-aborted',
    model: [{ calls: [BASH] }],
    react: ({ type }, api, sessionId) =>
      type === 'permission.asked' ? api.abort(sessionId) : undefined,
  },
  {
    name: 'tool-error',
    model: [
      { calls: [{ ...READ, input: { filePath: 'missing.txt' } }] },
      { text: ['It is not there.'] },
    ],
  },
  {
    name: 'parallel-tools',
    model: [{ calls: [READ, { ...READ, id: 'read-2' }, BASH] }, { text: ['All done.'] }],
    react: reply('once'),
  },
  {
    name: 'same-call-id-twice',
    model: [{ calls: [READ] }, { calls: [READ] }, { text: ['Still the same.'] }],
  },
  {
    name: 'abort',
    model: [{ text: ['On ', 'and '], isHeld: true }],
    react: ({ properties: { delta } }, api, sessionId) =>
      delta === 'and ' ? api.abort(sessionId) : undefined,
  },
  {
    name: 'retry-aborted',
    model: [{ refuse: { status: 429, message: 'Too many requests.' } }],
    react: ({ properties: { status } }, api, sessionId) =>
      status?.type === 'retry' ? api.abort(sessionId) : undefined,
  },
  {
    name: 'provider-error',
    model: [{ refuse: { status: 401, message: 'Incorrect API key provided.' } }],
  },
  { name: 'length', model: [{ text: ['Too long to'], finish: 'length' }] },
  {
    name: 'question',
    model: [
      {
        calls: [
          {
            id: 'ask-1',
            name: 'question',
            input: {
              questions: [
                {
                  question: 'Which colour?',
                  header: 'Colour',
                  options: [
                    { label: 'Red', description: 'As a rose' },
                    { label: 'Blue', description: 'As the sea' },
                  ],
                },
              ],
            },
          },
        ],
      },
      { text: ['Blue it is.'] },
    ],
    react: ({ type, properties: { id = '' } }, api) =>
      type === 'question.asked' ? api.replyToQuestion(id, [['Blue']]) : undefined,
  },
  {
    name: 'subagent',
    model: [
      {
        calls: [
          {
            id: 'task-1',
            name: 'task',
            input: { description: 'Look around', prompt: ERRAND, subagent_type: 'general' },
          },
        ],
      },
      { text: ['Somebody went.'] },
    ],
    errand: [{ text: ['On my way.'], calls: [BASH] }, { text: ['Errand done.'] }],
    react: reply('once'),
  },
];

/** What is said to get a scenario's answers. */
export const promptOf = ({ name }: Scenario) => `Play ${name}`;

export function scriptsOf(scenarios: Scenario[]): Record<string, ModelAnswer[]> {
  const scripts: Record<string, ModelAnswer[]> = {};
  for (const scenario of scenarios) {
    scripts[promptOf(scenario)] = scenario.model;
    if (scenario.errand) scripts[ERRAND] = scenario.errand;
  }
  return scripts;
}
