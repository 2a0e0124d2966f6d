import { describeUpstream, type UpstreamRig } from '../../../test/upstream-conformance.ts';
import type { Chunk } from '../../core/chunks.ts';
import type { AgentPrompt } from '../../turns/agent.ts';
import { asUpstream } from './upstream.ts';

const HELLO = ['Hello', ', ', 'world!'];

const TRAITS = { hasConnection: false, hasHistory: false };

async function setUp(isSerial: boolean): Promise<UpstreamRig> {
  const gate = Promise.withResolvers<void>();
  const prompts: { text: string; user: string }[] = [];
  let running = 0;

  async function* answer({ text, user, signal, answer }: AgentPrompt): AsyncGenerator<Chunk> {
    const [word] = text.split(' ', 1);
    prompts.push({ text, user: user.id });
    running++;
    try {
      if (word === 'fail') throw new Error('It broke.');
      if (word === 'question') {
        const question = { questionId: 'q1', text: 'Deploy?', options: ['Yes', 'No'] };
        yield { type: 'data-question', id: 'q1', data: { ...question, status: 'open' } };
      }
      const said = word === 'question' ? [`Answered: ${await answer('q1')}`] : [text];
      yield { type: 'text-start', id: '1' };
      if (word === 'slow') {
        yield { type: 'text-delta', id: '1', delta: 'Half ' };
        await Promise.race([gate.promise, aborted(signal)]);
        yield { type: 'text-delta', id: '1', delta: 'and whole.' };
        return;
      }
      for (const delta of word === 'text' ? HELLO : said)
        yield { type: 'text-delta', id: '1', delta };
    } finally {
      running--;
    }
  }

  return {
    upstream: asUpstream(isSerial ? { name: 'serial', prompt: answer } : answer),
    prompts: () => prompts,
    go: () => gate.resolve(),
    held: () => running,
    isSerial,
    close: async () => gate.resolve(),
  };
}

describeUpstream('asUpstream of a function', TRAITS, () => setUp(false));
describeUpstream('asUpstream of an agent', TRAITS, () => setUp(true));

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
