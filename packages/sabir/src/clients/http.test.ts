import { expect, it } from 'vitest';
import { toRequestError } from './http.ts';

it('says what the server said, and is an error whatever that was', async () => {
  const body = '{"message":"No.","code":"nope","status":7,"__proto__":{"name":"forged"}}';
  const error = await toRequestError(new Response(body, { status: 404 }));
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({ name: 'Error', message: 'No.', code: 'nope', status: 404 });
});

it.each(['', '<html>', 'null', '7', '[]', '{"message":7}'])('has words for %j', async (body) => {
  const error = await toRequestError(new Response(body, { status: 502 }));
  expect(error.message).toBe('The server could not answer.');
});
