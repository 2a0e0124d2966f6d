/** Runs a prompt on a driver as a runner does, and keeps what came of it. */
import { expect, vi } from 'vitest';
import type {
  AgentDriver,
  DriverAnswer,
  DriverEvent,
  DriverPrompt,
  DriverQuestion,
} from '../src/turns/driver.ts';

type ToolEvent = Extract<DriverEvent, { type: 'tool' }>;
export type DriverRun = {
  readonly events: DriverEvent[];
  /** What was asked, and is still to be answered. */
  readonly questions: DriverQuestion[];
  readonly text: string;
  readonly reasoning: string;
  readonly tools: ToolEvent[];
  answer(answer: DriverAnswer | string | boolean): void;
  abort(): void;
  /** Resolves when the driver has returned; rejects with what it threw. */
  readonly done: Promise<void>;
};

/** A turn that has not ended in this time is not going to. */
const PATIENCE = { timeout: 10_000, interval: 5 };
export const until = (check: () => unknown) =>
  vi.waitFor(() => expect(check()).toBeTruthy(), PATIENCE);

let prompts = 0;

export function runPrompt(
  driver: AgentDriver,
  content: string,
  more: Partial<DriverPrompt> = {},
  stopping = new AbortController(),
): DriverRun {
  const id = ++prompts;
  const { signal } = stopping;
  const events: DriverEvent[] = [];
  const questions: DriverQuestion[] = [];
  const waiting: ((answer: DriverAnswer) => void)[] = [];
  const prompt: DriverPrompt = {
    sessionId: 's',
    channel: { channelType: 'web', channelId: 'default' },
    turnId: `t${id}`,
    promptId: `p${id}`,
    content,
    attachments: [],
    messages: [],
    signal,
    ask(question) {
      questions.push(question);
      return new Promise((resolve, reject) => {
        waiting.push(resolve);
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    },
    ...more,
  };

  async function run(): Promise<void> {
    for await (const event of driver.prompt(prompt)) events.push(event);
  }

  const done = run();
  done.catch(() => {
    // Whoever waits for it is told.
  });
  const say = (type: 'text' | 'reasoning') =>
    events.map((event) => (event.type === type ? event.delta : '')).join('');
  return {
    events,
    questions,
    get text() {
      return say('text');
    },
    get reasoning() {
      return say('reasoning');
    },
    get tools() {
      return events.filter((event) => event.type === 'tool');
    },
    answer(answer) {
      const given = typeof answer === 'object' ? answer : { status: 'answered' as const, answer };
      waiting.shift()?.(given);
    },
    abort: () => stopping.abort(),
    get done() {
      return withPatience(done);
    },
  };
}

async function withPatience(promise: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('The driver never ended.')), PATIENCE.timeout);
  });
  try {
    await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What a driver must not say of its calls, in words; nothing if all is well. */
export function findToolFaults(events: DriverEvent[], isOver = true): string[] {
  const order = ['pending', 'running', 'completed', 'error'];
  const faults: string[] = [];
  const last = new Map<string, ToolEvent>();
  for (const event of events) {
    if (event.type === 'tool-input' && last.get(event.callId)?.status !== 'pending') {
      faults.push(`${event.callId}: input that is not awaited`);
    }
    if (event.type !== 'tool') continue;
    const { callId, toolName, status } = event;
    const before = last.get(callId);
    last.set(callId, event);
    if (toolName === '') faults.push(`${callId}: no name`);
    if (status === 'error' && !event.error) faults.push(`${callId}: an error without words`);
    if (status === 'completed' && !('result' in event)) faults.push(`${callId}: no result`);
    if (!before) continue;
    const isBack = order.indexOf(status) < order.indexOf(before.status);
    const wasOver = before.status === 'completed' || before.status === 'error';
    if (isBack || wasOver) faults.push(`${callId}: ${before.status}, then ${status}`);
  }
  for (const [callId, { status }] of last) {
    const isOpen = status === 'pending' || status === 'running';
    if (isOver && isOpen) faults.push(`${callId}: still ${status}`);
  }
  return faults;
}
