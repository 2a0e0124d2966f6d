/**
 * A flow behind Express, whose `req` and `res` are Node's own: `toExpress` stands in between.
 *
 *     node express/server.ts
 *     PORT=4000 node express/server.ts
 */
import type { AddressInfo } from 'node:net';
import express from 'express';
import { createOpenHarnessHandler } from 'sabir/open-harness';
import { createRuntime } from '../flow/create-runtime.ts';
import { toExpress } from './to-express.ts';

const handler = toExpress(createOpenHarnessHandler(() => createRuntime()));

const app = express();
app.all('/api/chat', handler);
// Where useChat asks whether an answer is still being written. The handler says no: 204.
app.get('/api/chat/:id/stream', handler);

const server = app.listen(Number(process.env.PORT ?? 3002), (error) => {
  // Express hands a port that is taken to this callback; without a throw nobody would hear of it.
  if (error) throw error;
  console.log(`Listening on http://localhost:${(server.address() as AddressInfo).port}`);
});
