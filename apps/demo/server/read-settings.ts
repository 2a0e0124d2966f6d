import { chooseAgent, type SessionAgent } from './choose-agent.ts';
import { chooseDeskModel, chooseModel, type Environment } from './choose-model.ts';
import type { AppOptions } from './create-app.ts';

export type Settings = AppOptions & {
  hasGateway: boolean;
  agent: SessionAgent;
  /** The file that sessions are kept in; without one they end with the process. */
  database?: string;
};

/** What the environment says about the demo, whoever serves it. */
export function readSettings(env: Environment): Settings {
  /** How many times faster than life the scripted models play; the tests are in a hurry. */
  const speed = Number(env.SABIR_DEMO_SPEED) || 1;
  const answerMs = Number(env.SABIR_DEMO_ANSWER_MS);
  return {
    model: chooseModel(env, speed),
    deskModel: chooseDeskModel(env, speed),
    agent: chooseAgent(env, speed),
    speed,
    ...(answerMs > 0 && { answerMs }),
    hasGateway: env.ENABLE_AI_SDK_ADAPTER === 'true',
    ...(env.SABIR_DATABASE && { database: env.SABIR_DATABASE }),
  };
}
