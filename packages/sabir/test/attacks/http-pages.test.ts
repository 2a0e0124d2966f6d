/** Attacks by pages in somebody's browser, and by tokens. */
import { describe, expect, it } from 'vitest';
import { chatBody, echo, refusal } from '../gateway-client.ts';
import { startAttacked } from './attacked.ts';

describe('a foreign page', () => {
  it.each(['Basic Y2FybDpwdw==', 'Negotiate abc', 'Digest username="carl"', 'NTLM abc'])(
    'whose post the browser signs by itself with "%s" is refused: 403',
    async (authorization) => {
      const attacked = await startAttacked(echo, { authenticate: () => ({ id: 'carl' }) });
      const carl = attacked.user(undefined);
      const origin = 'https://evil.example';
      const post = (headers: HeadersInit) => carl.post(chatBody('a'), { headers });
      expect(await refusal(await post({ origin, authorization }))).toMatchObject({ status: 403 });
      expect((await post({ authorization })).status).toBe(200);
      expect((await post({ origin, authorization: 'Bearer abc' })).status).toBe(200);
    },
  );
});
