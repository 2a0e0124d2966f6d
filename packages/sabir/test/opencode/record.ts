import { createOpenCodeApi } from '../../src/sources/opencode/api.ts';
import { createEventStream } from '../../src/sources/opencode/event-stream.ts';
import { createOpenCodeHome, launchHome } from './opencode-options.ts';
import { promptOf, type RecordedEvent, type Scenario, scriptsOf } from './scenarios.ts';
import { startScriptedModel } from './scripted-model.ts';

/** Everything that the real server says in each scenario, as the lines of a fixture. */
export async function record(scenarios: Scenario[]): Promise<Map<string, unknown[]>> {
  const model = await startScriptedModel(scriptsOf(scenarios));
  const home = createOpenCodeHome(model);
  const { directory } = home;
  const server = await launchHome(home);
  const api = createOpenCodeApi(server);
  let hear: (event: RecordedEvent) => void = () => undefined;
  const stream = createEventStream(api, {
    silenceMs: 30_000,
    reconnectMs: 0,
    event: (event) => hear(event as RecordedEvent),
    reconnected: () => undefined,
    lost: () => undefined,
  });
  await stream.ready;
  const recordings = new Map<string, unknown[]>();
  try {
    for (const scenario of scenarios) {
      const sessionId = await api.createSession();
      const events: RecordedEvent[] = [];
      await new Promise<void>((resolve, reject) => {
        hear = (event) => {
          events.push(event);
          scenario.react?.(event, api, sessionId)?.catch(reject);
          if (event.type === 'session.idle' && event.properties.sessionID === sessionId) resolve();
        };
        const parts = [{ type: 'text' as const, text: promptOf(scenario) }];
        api.prompt(sessionId, { parts }).catch(reject);
      });
      const lines = JSON.stringify([{ options: { sessionId } }, ...events])
        .replaceAll(directory, '/workspace')
        .replaceAll(model.url, 'http://127.0.0.1:8000/v1');
      recordings.set(scenario.name, JSON.parse(lines));
    }
  } finally {
    stream.close();
    await server.stop();
    await model.close();
    home.remove();
  }
  return recordings;
}
