import { expect, it } from 'vitest';
import { createOpenCodeReader } from './read-events.ts';

const ids = { sessionID: 's', messageID: 'm' };
const info = { id: 'm', sessionID: 's', role: 'assistant', time: { created: 1 } };
const part = (text: string, end?: number) => ({
  ...ids,
  id: 'p',
  type: 'text',
  text,
  time: { start: 1, ...(end && { end }) },
});
const delta = (words: string) => ({
  type: 'message.part.delta',
  properties: { ...ids, partID: 'p', field: 'text', delta: words },
});
const updated = (given: object) => ({
  type: 'message.part.updated',
  properties: { part: given },
});

it.each([
  ['whole by then', part('One two three', 2)],
  ['half of it', part('One tw')],
])('events that were on their way tell nothing twice after a look: %s', (_what, seen) => {
  let text = '';
  const reader = createOpenCodeReader({
    sessionId: 's',
    signal: (signal) => {
      if (signal.kind === 'text') text += signal.delta;
    },
  });
  reader.read({ type: 'message.updated', properties: { info } });
  reader.read(updated(part('')));
  reader.read(delta('One '));
  expect(text).toBe('One ');
  reader.catchUp([{ info, parts: [seen] }] as never);
  for (const words of ['two ', 'three']) reader.read(delta(words));
  reader.read(updated(part('One two three', 2)));
  expect(text).toBe('One two three');
});
