/** The harbour guide that the desk's search tool really searches. */
export type GuideEntry = {
  id: string;
  title: string;
  text: string;
} & (
  | { url: string }
  /** A leaflet of the harbour office: a document without an address. */
  | { filename: string }
);

const MAX_HITS = 3;

export const GUIDE: readonly GuideEntry[] = [
  {
    id: 'lingua-franca',
    title: 'Mediterranean Lingua Franca',
    text: 'Sailors, merchants and porters around the Mediterranean understood each other in a shared contact language, also called Sabir. Its words were mostly Italian, with Spanish, Occitan, Arabic, Turkish and Greek among them.',
    url: 'https://en.wikipedia.org/wiki/Mediterranean_Lingua_Franca',
  },
  {
    id: 'lingua-franca-meaning',
    title: 'Lingua franca, what the word means',
    text: 'Any language that people use among themselves who have no other in common. The first to be called so was that of the Mediterranean sailors and their ports.',
    url: 'https://www.britannica.com/topic/lingua-franca',
  },
  {
    id: 'word-list',
    title: 'Word list for sailors, a leaflet of the harbour office',
    text: 'One verb form for everybody, close to the infinitive: sabir, to know; andar, to go; mangiar, to eat. Enough for sailors to understand each other on the quay.',
    filename: 'word-list.pdf',
  },
  {
    id: 'portolan',
    title: 'Portolan charts',
    text: 'Sea charts from the thirteenth century on, drawn from compass bearings and from what pilots had seen. Port after port is written along the coast, at right angles to it.',
    url: 'https://en.wikipedia.org/wiki/Portolan_chart',
  },
  {
    id: 'mistral',
    title: 'The mistral',
    text: 'A strong, cold north-westerly wind that blows down the Rhône valley to the Gulf of Lion, most often in winter and spring. Boats in Marseille then stay in port.',
    url: 'https://en.wikipedia.org/wiki/Mistral_(wind)',
  },
  {
    id: 'vieux-port',
    title: 'The Old Port of Marseille',
    text: 'A natural harbour that has been in use for some 2,600 years, since Greeks from Phocaea landed there. Today it is a marina in the middle of the city.',
    url: 'https://en.wikipedia.org/wiki/Old_Port_of_Marseille',
  },
  {
    id: 'lanterna',
    title: 'The lighthouse of Genoa',
    text: 'The Lanterna, rebuilt in 1543 and 77 metres tall, is the main lighthouse of the port of Genoa and one of the oldest that still work.',
    url: 'https://en.wikipedia.org/wiki/Lighthouse_of_Genoa',
  },
  {
    id: 'arrival',
    title: 'Arriving by boat, the rules of the harbour office',
    text: 'Call on channel 12 before you enter, keep below three knots inside the moles, and show your papers at the office on the day you arrive.',
    filename: 'arrival-rules.pdf',
  },
];

/** Counts the words an entry shares with the query; a hit in the title counts three times. */
export function searchGuide(query: string): GuideEntry[] {
  const wanted = toWords(query);
  const scored = GUIDE.map((entry) => {
    const title = toWords(entry.title);
    const text = toWords(entry.text);
    let score = 0;
    for (const word of wanted) score += (title.has(word) ? 3 : 0) + (text.has(word) ? 1 : 0);
    return { entry, score };
  });
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, MAX_HITS)
    .map(({ entry }) => entry);
}

/** Words that every sentence has find every entry. */
const COMMON = new Set(
  'about again and any are can did does each for from has have how its one other some tell that the their them then there they this was what when where which who why with you your'.split(
    ' ',
  ),
);

export function toWords(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\d]{3,}/gu) ?? [];
  return new Set(words.filter((word) => !COMMON.has(word)));
}
