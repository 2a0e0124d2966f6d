/** What the page offers to ask the desk, and what a person is to see happen. */
export const DESK_SUGGESTIONS = [
  {
    title: 'Look something up',
    message: 'How did Mediterranean sailors understand each other?',
  },
  {
    title: 'Be handed over',
    message: 'Which berths have I booked?',
  },
  {
    title: 'Ask before it acts',
    message: 'Cancel my berth in Marseille and refund it',
  },
  {
    title: 'Show me a failure',
    message: 'Show me a failure',
  },
] as const;
