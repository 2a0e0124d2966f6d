import { expect, it } from 'vitest';
import { trackProgress } from './track-progress.ts';

it('counts a tool as working from its start to its answer, also one that tells no input', () => {
  const progress = trackProgress(1_000);
  progress.see({ type: 'tool-input-start', toolCallId: 'a', toolName: 'search' });
  progress.see({ type: 'tool-input-start', toolCallId: 'b', toolName: 'read' });
  expect([...progress.tools]).toEqual(['a', 'b']);
  progress.see({ type: 'tool-output-available', toolCallId: 'a', output: 1, preliminary: true });
  expect([...progress.tools]).toEqual(['a', 'b']);
  progress.see({ type: 'tool-output-available', toolCallId: 'a', output: 1 });
  progress.see({
    type: 'tool-input-error',
    toolCallId: 'b',
    toolName: 'read',
    input: 1,
    errorText: 'x',
  });
  expect([...progress.tools]).toEqual([]);
});

it('gives a question its usual time where what it says is no time', () => {
  const progress = trackProgress(1_000);
  const before = Date.now();
  for (const [id, expiresAt] of Object.entries({ nan: Number.NaN, text: '7', never: Infinity })) {
    progress.see({ type: 'data-question', id, data: { questionId: id, expiresAt } });
  }
  expect(progress.questions.get('nan')).toBeGreaterThanOrEqual(before + 1_000);
  expect(progress.questions.get('text')).toBeGreaterThanOrEqual(before + 1_000);
  expect(progress.questions.get('never')).toBe(Infinity);
});
