import { type GuideEntry, toWords } from '../guide.ts';
import { hasCalled, type Passage, quote, read, type Speak } from '../script.ts';

type Found = { hits: GuideEntry[] };

export const research: Speak = (situation) => {
  const { message, attempt } = situation;
  if (/fail/i.test(message)) return fail(attempt);
  if (!hasCalled(situation, 'search_guide')) {
    const isAboutWords = /\b(languages?|sailors?|words?|speak|understand|understood)\b/i.test(
      message,
    );
    return [
      {
        think: `The question is ${quote(message)}. I search the guide for its own words before I say anything.`,
      },
      { say: 'Let me see what the harbour guide has on this.' },
      { call: 'search_guide', input: { query: [...toWords(message)].join(' ') || message } },
      ...(isAboutWords ? [{ call: 'open_archive', input: { id: 'word-list' } }] : []),
    ];
  }
  const hits = read<Found>(situation, 'search_guide')?.hits ?? [];
  const isArchiveShut = hasCalled(situation, 'open_archive') && !read(situation, 'open_archive');
  const [first] = hits;
  if (!first) {
    return [
      {
        say: `The guide has nothing on ${quote(message)}, so I would rather not answer than invent something.

This desk is played by a scripted model and knows only its guide: try the winds, the charts, the lighthouse of Genoa, or how sailors understood each other.`,
      },
    ];
  }
  return [
    {
      think: `${hits.length === 1 ? 'One entry fits' : `${hits.length} entries fit`}. I keep to what they say, and name each of them.`,
    },
    { say: answer(first, hits, isArchiveShut) },
  ];
};

function answer(first: GuideEntry, hits: GuideEntry[], isArchiveShut: boolean): Passage[] {
  return [
    { text: `## ${first.title}\n\n` },
    ...hits.map((entry) => ({
      text: entry === first ? `${entry.text}\n\n` : `**${entry.title}.** ${entry.text}\n\n`,
      source: entry,
    })),
    ...(isArchiveShut
      ? [
          {
            text: 'The full text is in an archive that did not answer, so this is the guide’s own summary.\n\n',
          },
        ]
      : []),
    { text: '*Without a key this desk quotes its guide, word for word.*' },
  ];
}

function fail(attempt: number): ReturnType<Speak> {
  const beginning = 'There are two kinds of failure, and a chat should';
  if (attempt === 1) {
    return [
      { think: 'They want to see something go wrong. Here it comes.' },
      { say: `## When things go wrong\n\n${beginning}` },
      { fail: 'The desk lost its connection to the model. Your message is safe: try again.' },
    ];
  }
  return [
    {
      say: `## When things go wrong

${beginning} tell them apart.

| What failed | What you saw | What you could do |
| --- | --- | --- |
| a tool | a card marked *failed* | nothing, the agent went on |
| the model | a banner, in plain words | try again |

This is attempt number ${attempt}, and it worked.`,
    },
  ];
}
