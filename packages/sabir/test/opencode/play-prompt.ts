import type {
  AgentDriver,
  DriverAnswer,
  DriverEvent,
  DriverPrompt,
  DriverQuestion,
} from '../../src/turns/driver.ts';

export type Played = {
  events: DriverEvent[];
  questions: DriverQuestion[];
  error?: Error;
};

type Given = Partial<DriverPrompt> & {
  answer?: (question: DriverQuestion) => DriverAnswer | Promise<DriverAnswer>;
  /** Called with each event as it comes. */
  on?: (event: DriverEvent) => void;
};

let prompts = 0;

/** One prompt, to its end, with everything that was said and asked on the way. */
export async function playPrompt(
  driver: AgentDriver,
  content: string,
  given: Given = {},
): Promise<Played> {
  const { answer, on, ...rest } = given;
  const played: Played = { events: [], questions: [] };
  const id = `prompt-${++prompts}`;
  const prompt: DriverPrompt = {
    sessionId: 'session',
    channel: { channelType: 'web', channelId: 'default' },
    turnId: `turn-${id}`,
    promptId: id,
    content,
    attachments: [],
    messages: [],
    signal: new AbortController().signal,
    async ask(question) {
      played.questions.push(question);
      if (!answer) throw new Error('Nobody is there to answer.');
      return answer(question);
    },
    ...rest,
  };
  try {
    for await (const event of driver.prompt(prompt)) {
      played.events.push(event);
      on?.(event);
    }
  } catch (error) {
    played.error = error as Error;
  }
  return played;
}

export function textOf({ events }: Played): string {
  return events.map((event) => (event.type === 'text' ? event.delta : '')).join('');
}
