import { searchGuide } from '../guide.ts';
import { quote, type Speak } from '../script.ts';

const WORDS = 70;
const ABOUT_BOOKINGS = /\b(book(ed|ings?)?|berths?|moorings?|cancel\w*|refund\w*|reserv\w*)\b/i;
const IS_QUESTION = /\?|^\s*(how|what|who|where|when|why|which|tell|explain|compare)\b/i;

export const triage: Speak = ({ message, earlier }) => {
  if (/\bclock\b/i.test(message)) {
    return [
      { stamp: 'think', words: WORDS },
      { stamp: 'say', words: WORDS },
    ];
  }
  if (ABOUT_BOOKINGS.test(message)) {
    return [
      { think: 'This is about a berth. Bookings has the register, and may cancel if asked to.' },
      { call: 'transfer_to_Bookings', input: {} },
    ];
  }
  if (/fail/i.test(message) || IS_QUESTION.test(message) || searchGuide(message).length > 0) {
    return [
      { think: 'A question, and nothing about a booking. Research has the guide.' },
      { call: 'transfer_to_Research', input: {} },
    ];
  }
  const words = message.match(/[\p{L}\d]+/gu) ?? [];
  return [
    { think: 'Neither a question nor a booking. I can answer this myself.' },
    {
      say: `Welcome to the harbour desk. You wrote ${quote(message)}: ${count(words.length, 'word')}, after ${count(earlier, 'message')} before it.

This desk is played by a **scripted model**, so that it works without a key. It can

- look something up in the harbour guide, with its sources,
- tell you which berths you have booked,
- cancel one of them, once you have allowed it.

With a key in the environment of the server, the same agents answer with a real model.`,
    },
  ];
};

function count(number: number, noun: string): string {
  return `${number || 'no'} ${noun}${number === 1 ? '' : 's'}`;
}
