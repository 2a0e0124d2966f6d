/**
 * The register of berths. Every chat has its own copy: whoever tries the demo finds all bookings
 * there, whatever somebody else has cancelled.
 *
 * Kept in memory, for the hundred chats that asked last.
 */
export type Booking = {
  number: string;
  port: string;
  berth: string;
  from: string;
  nights: number;
  paid: string;
  status: 'booked' | 'cancelled';
};

const BOOKINGS: readonly Booking[] = [
  {
    number: 'H-204',
    port: 'Marseille',
    berth: 'Guest berth 12',
    from: '14 June',
    nights: 2,
    paid: '€96',
    status: 'booked',
  },
  {
    number: 'H-311',
    port: 'Genoa',
    berth: 'Berth C7',
    from: '18 June',
    nights: 1,
    paid: '€54',
    status: 'booked',
  },
  {
    number: 'H-127',
    port: 'Valletta',
    berth: 'Buoy 3',
    from: '2 July',
    nights: 4,
    paid: '€80',
    status: 'booked',
  },
];
const MAX_CHATS = 100;

export type Register = ReturnType<typeof createRegister>;

export function createRegister() {
  const chats = new Map<string, Booking[]>();

  function bookingsOf(chatKey: string): Booking[] {
    const bookings = chats.get(chatKey) ?? BOOKINGS.map((booking) => ({ ...booking }));
    chats.delete(chatKey);
    chats.set(chatKey, bookings);
    for (const oldest of chats.keys()) {
      if (chats.size <= MAX_CHATS) break;
      chats.delete(oldest);
    }
    return bookings;
  }

  function find(chatKey: string, number: string): Booking | undefined {
    return bookingsOf(chatKey).find((booking) => booking.number === number);
  }

  return {
    all: (chatKey: string): Booking[] => bookingsOf(chatKey).map((booking) => ({ ...booking })),
    find,
    cancel(chatKey: string, number: string): { number: string; status: string; refund: string } {
      const booking = find(chatKey, number);
      if (!booking) throw new Error(`There is no booking ${number}.`);
      if (booking.status === 'cancelled')
        throw new Error(`Booking ${number} is cancelled already.`);
      booking.status = 'cancelled';
      return { number, status: booking.status, refund: booking.paid };
    },
  };
}
