import type { Booking } from '../bookings.ts';
import { type Beat, hasCalled, read, type Situation, type Speak } from '../script.ts';

type Listed = { bookings: Booking[] };
type Cancelled = { number: string; refund: string };

/** What the SDK tells a model whose call was refused without a word, and what Sabir does when nobody came. */
const REFUSED = 'Tool execution was not approved.';
const TOO_LATE = 'Nobody answered in time.';

export const bookings: Speak = (situation) => {
  const { message } = situation;
  const isToCancel = /\b(cancel\w*|refund\w*|call off)\b/i.test(message);
  if (hasCalled(situation, 'cancel_booking')) return afterwards(situation);
  if (!hasCalled(situation, 'find_bookings')) {
    return [
      {
        think: isToCancel
          ? 'Before I cancel anything I look up which booking is meant.'
          : 'I look in the register.',
      },
      { call: 'find_bookings', input: {} },
    ];
  }
  const all = read<Listed>(situation, 'find_bookings')?.bookings ?? [];
  if (!isToCancel) return [{ say: list(all) }];
  const meant = findMeant(message, all);
  if (!meant) {
    return [{ say: `Which one do you mean? Tell me its number or its port.\n\n${list(all)}` }];
  }
  if (meant.status === 'cancelled') {
    return [{ say: `Booking **${meant.number}** in ${meant.port} is cancelled already.` }];
  }
  return [
    {
      say: `I found it: **${meant.number}**, ${meant.berth} in ${meant.port}, from ${meant.from}. Cancelling is for good, so I need your word first.`,
    },
    { call: 'cancel_booking', input: { number: meant.number } },
  ];
};

function afterwards(situation: Situation): Beat[] {
  const done = read<Cancelled>(situation, 'cancel_booking');
  if (done) {
    return [
      {
        say: `Done. Booking **${done.number}** is cancelled, and ${done.refund} is on its way back to you.`,
      },
    ];
  }
  const text = situation.answers.findLast(({ name }) => name === 'cancel_booking')?.text ?? '';
  if (text === TOO_LATE) {
    return [
      { say: 'Nobody answered in time, so I left the booking as it is. Ask me again any time.' },
    ];
  }
  if (text === REFUSED) {
    return [{ say: 'All right, I left the booking as it is. Nothing was cancelled.' }];
  }
  return [{ say: `I left the booking as it is, because I was told: “${text}”` }];
}

/** By its number, by its port, or because there is no other. */
function findMeant(message: string, all: Booking[]): Booking | undefined {
  const said = message.toLowerCase();
  const isNamed = ({ number, port }: Booking) =>
    said.includes(number.toLowerCase()) || said.includes(port.toLowerCase());
  const open = all.filter(({ status }) => status === 'booked');
  return all.find(isNamed) ?? (open.length === 1 ? open[0] : undefined);
}

function list(all: Booking[]): string {
  const rows = all.map(
    ({ number, port, berth, from, nights, paid, status }) =>
      `| ${number} | ${port}, ${berth} | ${from} | ${nights} | ${status === 'booked' ? paid : 'cancelled'} |`,
  );
  return `These are your berths:

| Number | Where | From | Nights | Paid |
| --- | --- | --- | --- | --- |
${rows.join('\n')}

Say which one to cancel, if you like. I will ask you once more before I do.`;
}
