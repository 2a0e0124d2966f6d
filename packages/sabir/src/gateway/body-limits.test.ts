import { describe, expect, it } from 'vitest';
import {
  chatBody,
  createTestGateway,
  createUser,
  echo,
  ORIGIN,
  refusal,
} from '../../test/gateway-client.ts';

const carl = () => createUser(createTestGateway(echo), 'carl');
const TEN_MEGABYTES = 10_000_000;
const filled = (item: string) => `[${`${item},`.repeat(TEN_MEGABYTES / (item.length + 1))}0]`;

/** A body whose `x` is this text, as a stream that counts what was taken of it. */
function streamOf(x: string) {
  const bytes = new TextEncoder().encode(`{"x":${x},${JSON.stringify(chatBody('hi')).slice(1)}`);
  const taken = { bytes: 0 };
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = bytes.subarray(taken.bytes, taken.bytes + 65_536);
      taken.bytes += piece.length;
      if (piece.length > 0) controller.enqueue(piece);
      else controller.close();
    },
  });
  return { body, taken };
}

describe('a body of 10 MB', () => {
  it.each([
    ['arrays', filled('[]')],
    ['objects', filled('{}')],
    ['numbers', filled('10')],
    ['text', `"${'x'.repeat(TEN_MEGABYTES)}"`],
    ['spaces', `${' '.repeat(TEN_MEGABYTES)}1`],
  ])('of %s and no files is refused after 1.2 MB of it: 413', async (_, x) => {
    const { body, taken } = streamOf(x);
    const request = new Request(`${ORIGIN}/api/sessions/s1/chat`, {
      method: 'POST',
      headers: { authorization: 'Bearer carl' },
      body,
      duplex: 'half',
    } as RequestInit);
    const response = await createTestGateway(echo).fetch(request);
    expect(await refusal(response)).toMatchObject({ status: 413, code: 'body-too-large' });
    expect(taken.bytes).toBeLessThan(1_200_000);
  });

  it('that is one attached file is taken', async () => {
    const url = `data:text/plain,${'x'.repeat(TEN_MEGABYTES - 100)}`;
    const file = { type: 'file', mediaType: 'text/plain', url };
    const messages = [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'hi' }, file] }];
    const response = await carl().post(chatBody('', { messages }));
    expect(response.status).toBe(200);
    await response.body?.cancel();
  });

  it('whose text only looks like a file is refused: 413', async () => {
    const response = await carl().post(chatBody(`data:,${'x'.repeat(TEN_MEGABYTES)}`));
    expect(await refusal(response)).toMatchObject({ status: 413, code: 'body-too-large' });
  });

  it('that declares a length past the limits is refused before it is read', async () => {
    let pulls = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull() {
          pulls++;
          return new Promise(() => undefined);
        },
      },
      { highWaterMark: 0 },
    );
    const headers = { authorization: 'Bearer carl', 'content-length': '11000001' };
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
    const request = new Request(`${ORIGIN}/api/sessions/s1/chat`, init);
    const response = await createTestGateway(echo).fetch(request);
    expect(await refusal(response)).toMatchObject({ status: 413, code: 'body-too-large' });
    expect(pulls).toBe(0);
  });

  it('with 100,001 objects and fields in 1 MB is refused: 413', async () => {
    const x = Array(100_001).fill({});
    expect(await refusal(await carl().post(chatBody('hi', { x })))).toMatchObject({
      status: 413,
      message: 'The body has more than 100000 objects and fields.',
    });
  });
});
