/** Messages that a session refuses, seen from HTTP through the whole stack. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { chatBody, openSse, refusal } from '../../../test/gateway-client.ts';
import { scriptedAgent } from '../../../test/scripted-agent.ts';
import type { AuditEvent } from '../../core/audit.ts';
import { memorySessionStore } from '../../sessions/index.ts';
import { startSessionStack } from './sessions.ts';

describe('a message that a session refuses', () => {
  it('because its queue is full is a 429 with Retry-After, not a stream; those that wait get theirs', async () => {
    const agent = scriptedAgent();
    const events: AuditEvent[] = [];
    const stack = await startSessionStack({
      store: memorySessionStore(),
      agent: () => agent,
      sessions: { limits: { queuedPrompts: 1 } },
      gateway: { onAudit: (event) => events.push(event), timing: { acceptMs: 5_000 } },
      shutdownMs: 0,
    });
    onTestFinished(() => stack.close());
    const post = (text: string) =>
      fetch(`${stack.url}/api/sessions/s1/chat`, {
        method: 'POST',
        body: JSON.stringify(chatBody(text, { id: text })),
      });
    const first = openSse(await post('slow'));
    await first.until(() => first.text());
    // Its place in the queue is an answer: its stream does not wait for its turn.
    const second = await post('text');
    expect(second.status).toBe(200);
    const third = await post('more');
    expect(third.headers.get('retry-after')).toBe('5');
    expect(await refusal(third)).toMatchObject({ status: 429, code: 'queue-full' });
    expect(events.map(({ outcome, code }) => code ?? outcome)).toEqual([
      'accepted',
      'accepted',
      'queue-full',
    ]);
    agent.go();
    const waited = openSse(second);
    await Promise.all([first.ended, waited.ended]);
    expect(waited.text()).toBe('Hello, world!');
    const again = openSse(await post('more'));
    await again.ended;
    expect(again.text()).toBe('more');
  });
});
