import { chooseDeskModel, chooseModel, type Environment } from './choose-model.ts';
import type { AppOptions } from './create-app.ts';

/** What the environment says about the app, whoever serves it. */
export function readSettings(env: Environment): AppOptions {
  /** How many times faster than life the scripted models play; the tests are in a hurry. */
  const speed = Number(env.SABIR_DEMO_SPEED) || 1;
  const answerMs = Number(env.SABIR_DEMO_ANSWER_MS);
  return {
    model: chooseModel(env, speed),
    deskModel: chooseDeskModel(env, speed),
    speed,
    ...(answerMs > 0 && { answerMs }),
    hasGateway: env.ENABLE_AI_SDK_ADAPTER === 'true',
  };
}
