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
