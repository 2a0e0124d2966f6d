/** The gateway with one turn that everybody watches, in a process of its own. */
import { asUpstream, createChatGateway } from 'sabir/gateway';
import { serve } from 'sabir/node';
import { answerMarks, deltas, whenTold } from './source.ts';

const gateway = createChatGateway({
  upstream: asUpstream(async function* () {
    // From the start: the message may come before the last delta is due.
    const ended = whenTold('end');
    yield { type: 'text-start', id: 't' };
    await whenTold('go');
    for await (const batch of deltas()) {
      for (const delta of batch) yield { type: 'text-delta', id: 't', delta };
    }
    await ended;
  }),
  authenticate: () => ({ id: 'user' }),
  access: () => 'owner',
  limits: { viewersPerUser: Infinity },
});
const { url } = await serve({ fetch: gateway.fetch });
answerMarks({ port: Number(new URL(url).port) });
