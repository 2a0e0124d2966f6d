import { type Scripts, toText } from './scripted-model.ts';

/** A dot. */
export const PNG =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const run = (id: string, command: string) => ({
  id,
  name: 'bash',
  input: { command, description: 'Says something' },
});

/** What the model says in the tests of the agent. */
export const AGENT_SCRIPTS: Scripts = {
  'Say hello': [{ text: ['Hel', 'lo ', 'there.'] }],
  'What did I say': [
    ({ messages }) => {
      const said = messages.filter(({ role }) => role === 'user').map(({ content }) => content);
      return { text: [`You said: ${said.map(toText).join(' | ')}`] };
    },
  ],
  'Think and read': [
    {
      reasoning: ['I should ', 'look.'],
      text: ['Looking.'],
      calls: [{ id: 'read-1', name: 'read', input: { filePath: 'hello.txt' } }],
    },
    { text: ['It says hello.'] },
  ],
  'Run it': [{ calls: [run('run-1', 'echo ran')] }, { text: ['It ran.'] }],
  'Run it again': [{ calls: [run('run-2', 'echo again')] }, { text: ['It ran again.'] }],
  'Run nothing': [{ calls: [run('run-3', 'echo never')] }, { text: ['I could not.'] }],
  'Read what is not there': [
    { calls: [{ id: 'read-2', name: 'read', input: { filePath: 'missing.txt' } }] },
    { text: ['It is not there.'] },
  ],
  'Talk for ever': [{ text: ['On ', 'and '], isHeld: true }],
  'Who are you': [{ refuse: { status: 401, message: 'Incorrect API key provided.' } }],
  'Ask me': [
    {
      calls: [
        {
          id: 'ask-1',
          name: 'question',
          input: {
            questions: ['Red', 'Square'].map((label) => ({
              question: `${label} or not?`,
              header: label,
              options: [
                { label, description: 'This' },
                { label: 'Not', description: 'That' },
              ],
            })),
          },
        },
      ],
    },
    { text: ['I see.'] },
  ],
  'Send somebody': [
    {
      calls: [
        {
          id: 'task-1',
          name: 'task',
          input: { description: 'Look', prompt: 'Do the errand', subagent_type: 'general' },
        },
      ],
    },
    { text: ['Somebody went.'] },
  ],
  'Do the errand': [{ calls: [run('run-4', 'echo errand')] }, { text: ['Errand done.'] }],
  'Talk in two halves': [{ text: ['One ', 'two '], isHeld: true, rest: ['three ', 'four'] }],
  'Talk, then run': [
    { text: ['Running.'], calls: [run('run-5', 'echo later')] },
    { text: ['Done.'] },
  ],
  'Which model': [({ model: name }) => ({ text: [`I am ${name}.`] })],
  'See this': [
    ({ messages }) => ({
      text: [JSON.stringify(messages).includes(PNG) ? 'I see it.' : 'What?'],
    }),
  ],
};
