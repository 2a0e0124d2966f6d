import { DESK_SUGGESTIONS } from '../desk/suggestions.ts';
import { SUGGESTIONS } from '../flow/topics.ts';

/** What a newcomer is told about who answers here. */
export type Intro = {
  title: string;
  text: string;
  /** Who a question may come to, in order. */
  route: ReadonlyArray<{ name: string; does: string }>;
  suggestions: ReadonlyArray<{ title: string; message: string }>;
  /** What the input says. */
  ask: string;
};

export const FLOW_INTRO: Intro = {
  title: 'Three agents, one conversation.',
  text: 'Ask something and watch them pass it on. Sabir turns what they think, look up and write into a chat, word by word, with nothing lost in between.',
  route: [
    { name: 'Researcher', does: 'looks things up' },
    { name: 'Writer', does: 'drafts the answer' },
    { name: 'Reviewer', does: 'has the last word' },
  ],
  suggestions: SUGGESTIONS,
  ask: 'Ask the three agents',
};

export const DESK_INTRO: Intro = {
  title: 'A desk that asks first.',
  text: 'Agents of the OpenAI Agents SDK, at the harbour desk. One takes your question and hands it to whoever knows: with sources for what they say, and your word before they act.',
  route: [
    { name: 'Triage', does: 'hands it over' },
    { name: 'Research', does: 'names its sources' },
    { name: 'Bookings', does: 'asks before it acts' },
  ],
  suggestions: DESK_SUGGESTIONS,
  ask: 'Ask the harbour desk',
};

export const SESSION_INTRO: Intro = {
  title: 'One session, many windows.',
  text: 'Open this address twice. Whoever asks, everybody watches: the answer, its questions and what waits behind it are the session’s, and stay there while windows come, go and lose their way.',
  route: [
    { name: 'Windows', does: 'ask, watch, answer' },
    { name: 'Session', does: 'keeps all of it' },
    { name: 'Agent', does: 'one turn at a time' },
  ],
  suggestions: [
    { title: 'Watch it from two windows', message: 'Read me the logbook' },
    { title: 'See a tool at work', message: 'Which berths are free?' },
    { title: 'Be asked for permission', message: 'Cast off' },
    { title: 'See it go wrong', message: 'Sail into a storm' },
  ],
  ask: 'Ask the harbour pilot',
};
