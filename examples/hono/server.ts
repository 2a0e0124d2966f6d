/**
 * A flow behind Hono. Hono speaks `Request` and `Response`, so nothing has to be adapted; when a
 * client goes away, the request's signal fires and the run stops.
 *
 *     node hono/server.ts
 *     PORT=4000 node hono/server.ts
 */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { createOpenHarnessHandler } from 'sabir/open-harness';
import { createRuntime } from '../flow/create-runtime.ts';

const handler = createOpenHarnessHandler(() => createRuntime());

const app = new Hono();
app.all('/api/chat', ({ req }) => handler(req.raw));
// Where useChat asks whether an answer is still being written. The handler says no: 204.
app.get('/api/chat/:id/stream', ({ req }) => handler(req.raw));

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3001) }, ({ port }) => {
  console.log(`Listening on http://localhost:${port}`);
});
