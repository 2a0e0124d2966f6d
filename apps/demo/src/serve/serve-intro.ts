import type { Intro } from '../intros.ts';

/** What a new chat on `sabir serve` says. The server knows what its agent can be asked, and writes it into the page. */
export const SERVE_INTRO: Intro = {
  title: 'What can I do for you?',
  text: 'Share the address of this page, and others are in the chat with you: everybody sees the answer as it is written. It goes on while you reload the page or are away.',
  route: [],
  suggestions: readSuggestions(),
  ask: 'Message',
};

function readSuggestions(): Intro['suggestions'] {
  const { content } = document.querySelector<HTMLMetaElement>('meta[name=suggestions]') ?? {};
  return content ? JSON.parse(content) : [];
}
