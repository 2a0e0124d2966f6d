import type { Chunk } from '../core/chunks.ts';
import { toDecision } from '../core/decision.ts';
import type { Agent, AgentPrompt, LooseDelta } from '../turns/agent.ts';

export type ScriptedAgentOptions = {
  /** How fast it speaks: 2 is twice as fast, 0 without any pause. Default 1. */
  speed?: number;
};

type Said = AsyncGenerator<Chunk | LooseDelta>;
type Script = (prompt: AgentPrompt, pace: Pace) => Said;
type Pace = (ms: number) => Promise<void>;

const WORD_MS = 55;

/**
 * An agent that needs no model: it plays a harbour pilot, with thoughts, tools, questions and
 * errors, for trying things out and for tests.
 */
export function scriptedAgent({ speed = 1 }: ScriptedAgentOptions = {}): Agent {
  return {
    name: 'scripted',
    concurrent: true,
    async *prompt(prompt) {
      const pace: Pace = (ms) => pause(speed > 0 ? ms / speed : 0, prompt.signal);
      const [, script] = SCRIPTS.find(([words]) => words.test(prompt.text)) ?? [/$/, introduce];
      yield* script(prompt, pace);
    },
  };
}

/** What it listens for, in this order. */
const SCRIPTS: [RegExp, Script][] = [
  [/\b(cast off|ask|permission|approve)\b/i, askToCastOff],
  [/\b(fail|error|storm)\b/i, runAground],
  [/\b(long|story|log ?book|slow)\b/i, tellLogbook],
  [/\b(prices?|compare)\b/i, comparePrices],
  [/\b(berths?|tool|harbour|harbor)\b/i, lookForBerths],
];

async function* introduce({ text }: AgentPrompt, pace: Pace): Said {
  yield* think('Somebody new on the quay. Say what can be done here.', pace);
  yield* say(
    `You said: “${text.slice(0, 200)}”. I am the harbour pilot, and I follow a script. Ask me for a ` +
      'free **berth** and I look it up with a tool; **compare** prices and I make a table; ask for the **logbook** and I talk for a while, so ' +
      'that you can reload, watch from a second window, or stop me; tell me to **cast off** and I ' +
      'ask for your permission first; mention a **storm** and something goes wrong.',
    pace,
  );
}

async function* lookForBerths(_: AgentPrompt, pace: Pace): Said {
  yield { type: 'start-step' };
  yield* think('The harbour office keeps a list. Look it up rather than guess.', pace);
  const call = { toolCallId: 'berths', providerExecuted: true };
  const toolName = 'find_berths';
  yield* say('Let me ask the harbour office. ', pace);
  yield { type: 'tool-input-start', ...call, toolName };
  await pace(300);
  const input = { port: 'Valletta', length: 12 };
  yield { type: 'tool-input-available', ...call, toolName, input };
  await pace(900);
  const free = ['Dockyard Creek 7', 'Kalkara 2'];
  yield { type: 'tool-output-available', ...call, output: { free } };
  yield { type: 'finish-step' };
  yield { type: 'start-step' };
  yield* say(`There are two: **${free[0]}** and **${free[1]}**. The second is quieter.`, pace);
}

const PRICES = `Three berths are free this week, for a boat of **12 m**:

| berth | per night | depth | good for |
| --- | ---: | ---: | --- |
| Dockyard Creek 7 | €48 | 4.2 m | the old town, on foot |
| Kalkara 2 | €39 | 3.1 m | a quiet night |
| Msida 114 | €31 | 2.6 m | a longer stay, with water and power |

The harbour office adds *VAT* to each night. To compare them yourself:

\`\`\`ts
const VAT = 1.18;

/** What a stay costs, in euros. */
export function costOf(perNight: number, nights: number): number {
  return Math.round(perNight * nights * VAT);
}

console.log(costOf(39, 3)); // 138
\`\`\`

I would take **Kalkara 2**: three nights cost €138.`;

async function* comparePrices(_: AgentPrompt, pace: Pace): Said {
  yield { type: 'start-step' };
  yield* think('Prices change with the season. Ask for the current list.', pace);
  const call = { toolCallId: 'prices', providerExecuted: true };
  const input = { port: 'Valletta', length: 12 };
  yield { type: 'tool-input-available', ...call, toolName: 'list_prices', input };
  await pace(700);
  const output = { 'Dockyard Creek 7': 48, 'Kalkara 2': 39, 'Msida 114': 31 };
  yield { type: 'tool-output-available', ...call, output };
  yield { type: 'finish-step' };
  yield { type: 'start-step' };
  for (const line of PRICES.split(/(?<=\n)/)) {
    yield { type: 'text-delta', delta: line };
    await pace(2 * WORD_MS);
  }
}

async function* askToCastOff({ ask }: AgentPrompt, pace: Pace): Said {
  yield* say('The wind is fair and the tide is with us. ', pace);
  const call = { toolCallId: 'cast-off', providerExecuted: true };
  const input = { berth: 'Dockyard Creek 7' };
  yield { type: 'tool-input-available', ...call, toolName: 'cast_off', input };
  const answer = await ask({
    text: 'May I cast off now?',
    options: ['Cast off', 'Not yet'],
    callId: call.toolCallId,
  });
  if (answer.status === 'expired') {
    yield { type: 'tool-output-error', ...call, errorText: 'Nobody answered in time.' };
    yield* say('Nobody answered, so we stay.', pace);
  } else if (answer.answer === 'Cast off' || toDecision(answer.answer).approved) {
    await pace(400);
    yield { type: 'tool-output-available', ...call, output: 'Lines are in.' };
    yield* say('We are under way. Fair winds!', pace);
  } else {
    yield { type: 'tool-output-error', ...call, errorText: 'Somebody said: not yet.' };
    yield* say('Then we wait for the evening breeze.', pace);
  }
}

async function* runAground(_: AgentPrompt, pace: Pace): Said {
  yield* say('The glass is falling, and there is white water ahead of', pace);
  await pace(300);
  throw new Error('The ship ran aground. This is what an error of an agent looks like.');
}

const LOGBOOK = [
  'Left Algiers with the land breeze, a cargo of dates and copper, and eleven languages aboard.',
  'By noon everybody spoke the same one: some Italian, some Arabic, whatever the oar needed.',
  'Off Cagliari a squall took the mizzen; the Greek carpenter and the Berber sailmaker mended it, arguing in Sabir.',
  'At Palermo the customs house wanted papers, and got a melon.',
  'Two days of calm. The cook told a story that began in Tunis and has not ended yet.',
  'Sighted Gozo at first light. The pilot came aboard and asked nothing but the draught.',
  'Moored in Valletta. Nothing lost on the way, which is more than most messages can say.',
];

async function* tellLogbook(_: AgentPrompt, pace: Pace): Said {
  yield* think('They want to hear the whole of it.', pace);
  for (const [day, entry] of LOGBOOK.entries()) {
    yield* say(`${day > 0 ? '\n\n' : ''}**Day ${day + 1}.** ${entry}`, pace);
    await pace(250);
  }
}

async function* think(text: string, pace: Pace): Said {
  for (const delta of words(text)) {
    yield { type: 'reasoning-delta', delta };
    await pace(WORD_MS / 2);
  }
}

async function* say(text: string, pace: Pace): Said {
  for (const delta of words(text)) {
    yield { type: 'text-delta', delta };
    await pace(WORD_MS);
  }
}

function words(text: string): string[] {
  return text.match(/\S+\s*|\s+/g) ?? [];
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (ms <= 0) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const onAbort = () => {
    clearTimeout(timer);
    reject(signal.reason);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
