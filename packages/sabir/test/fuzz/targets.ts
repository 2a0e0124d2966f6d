/** Everything that reads what somebody else has written. */
import { CLIENT_READERS } from './clients.ts';
import { DECODERS } from './decoders.ts';
import { HISTORIES } from './histories.ts';
import { RAW_ROUTES } from './raw-routes.ts';
import { REQUEST_READERS } from './requests.ts';
import { SESSIONS } from './sessions.ts';
import type { Target } from './target.ts';
import { TRANSLATORS } from './translators.ts';
import { UPSTREAMS } from './upstreams.ts';

export const TARGETS: Target[] = [
  ...[...DECODERS, ...TRANSLATORS, ...CLIENT_READERS, ...REQUEST_READERS],
  ...HISTORIES,
  ...[...SESSIONS, ...UPSTREAMS, ...RAW_ROUTES],
];
