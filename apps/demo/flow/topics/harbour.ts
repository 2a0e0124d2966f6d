import { countHits, plural, type Topic } from '../script.ts';

export const harbour: Topic = {
  suggestion: {
    title: 'The language of the ports',
    message: 'How did Mediterranean sailors understand each other?',
  },
  matches: (message) =>
    /\b(mediterranean|lingua|sailors?|ports?|harbou?r|merchants?|languages?)\b/i.test(message),
  write: () => ({
    researcher: [
      () => [
        {
          think:
            'This is about the old lingua franca of the Mediterranean, also called Sabir. I want three things: where it was spoken, how it worked, and one line that lets people hear it.',
        },
        { say: 'This has a name. Let me see what the library holds.' },
        { call: 'search_notes', input: { query: 'Mediterranean lingua franca ports' } },
        { call: 'search_notes', input: { query: 'Sabir grammar verb stage' } },
        { call: 'open_source', input: { id: 'marseille-1830' } },
      ],
      (answers) => [
        {
          think:
            'The dictionary of 1830 is out of reach, so no word list. Molière is better anyway: everybody can hear that line.',
        },
        {
          say: `I found ${plural(countHits(answers), 'note')}. The archive with the dictionary of 1830 did not answer, so I quote Molière instead. In short: **they shared a language that belonged to none of them.**`,
        },
      ],
    ],
    writer: [
      () => [
        {
          say: `## A language without a country

For some seven hundred years, a sailor from Genoa, a merchant from Tunis and a porter in Smyrna could strike a bargain in one tongue. They called it *lingua franca*; later people called it **Sabir**, from *saber*, to know.

### How it worked

- **Borrowed words.** Mostly Italian, with Spanish, Occitan, Portuguese, Arabic, Turkish and Greek.
- **One verb form.** Close to the infinitive, the same for everybody.
- **No native speakers.** Nobody was corrected, so everybody could speak.

### How it sounded

Molière put it on the stage in 1670:

> Se ti sabir, ti respondir;
> se non sabir, tazir, tazir.

| Sabir | Romance root | Meaning |
| --- | --- | --- |
| *sabir* | *saber* | to know |
| *respondir* | *responder* | to answer |
| *tazir* | *tacere* | to keep silent |

*If you know, answer; if you do not, keep silent.* It is still good advice, for people and for models.`,
        },
      ],
    ],
    reviewer: [
      () => [
        {
          think:
            'Compare with the notes: the centuries, the source languages, the verb form, Molière and the year. “Some seven hundred years” is a fair reading of Middle Ages to nineteenth century. The missing dictionary is admitted in the research.',
        },
        {
          say: `**Verdict: sound.**

1. The dates and the quotation agree with the notes.
2. “No native speakers” is the usual view of historians; it could be put more carefully.`,
        },
      ],
    ],
  }),
};
