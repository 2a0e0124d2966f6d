/** The sources there are, as agents. */
import { expect, it } from 'vitest';
import { echo, send } from '../../../test/harness-runtime.ts';
import { runPrompt } from '../../../test/run-prompt.ts';
import { OpenHarnessChatTransport } from '../open-harness/index.ts';

it('a transport of Open Harness is an agent in one function', async () => {
  const turn = runPrompt(
    ({ text, signal }) =>
      new OpenHarnessChatTransport(echo).sendMessages(send(text, { abortSignal: signal })),
    'hi',
  );
  await turn.done;
  expect(turn.text).toBe('You said hi');
});
