/** What every page of the matrix can show and do, whichever client it is made with. */
import { createElement, type FunctionComponent } from 'react';
import { createRoot } from 'react-dom/client';

export type Part = { type: string; [field: string]: unknown };
export type Message = { id: string; role: string; parts: Part[] };

export type ChatView = {
  messages: Message[];
  isBusy: boolean;
  error: Error | undefined;
  send(text: string): void;
  edit(messageId: string, text: string): void;
  regenerate(messageId: string): void;
  stop(): void;
  /** Answers an approval, or the question behind it. */
  answer(id: string, isApproved: boolean): void;
  /** The client knows no approvals: the page shows the questions behind them. */
  hasQuestions?: boolean;
};

export type Tool = {
  name: string;
  state: string;
  input: unknown;
  output: unknown;
  errorText: string | undefined;
  approvalId: string | undefined;
};

export function toolOf({
  type,
  state,
  input,
  output,
  errorText,
  approval,
}: Part): Tool | undefined {
  if (!type.startsWith('tool-')) return undefined;
  return {
    name: type.slice('tool-'.length),
    state: String(state),
    input,
    output,
    errorText: errorText as string | undefined,
    approvalId: (approval as { id: string } | undefined)?.id,
  };
}

/** The words that AI Elements has for the states of a tool. */
export const LABELS: Record<string, string> = {
  'input-streaming': 'Pending',
  'input-available': 'Running',
  'approval-requested': 'Awaiting Approval',
  'approval-responded': 'Responded',
  'output-available': 'Completed',
  'output-error': 'Error',
  'output-denied': 'Denied',
};

const params = new URLSearchParams(location.search);
export const session = params.get('session') ?? '';
export const chatId = params.get('chat') ?? 'main';
export const sdk = params.get('sdk') ?? '7';
export const api = `/api/sessions/${session}/chat`;

/** Beside the client's own stop, which disconnects. With `?stop=stock` the page has only that. */
export function stopTurn(): void {
  if (params.get('stop') !== 'stock') void fetch(`${api}/${chatId}/stop`, { method: 'POST' });
}

/** What `useSession` gives of a room, as much as a page needs to send. */
type Room = {
  queue: { message: object }[];
  running: unknown;
  enqueue(text: string): Promise<void>;
};

/** What is sent in mid-answer waits in the session's queue, and is shown behind the messages. */
export function withQueue(view: ChatView, { queue, running, enqueue }: Room): ChatView {
  const isFree = !view.isBusy && !running && queue.length === 0;
  const waiting = queue.map(({ message }) => message as Message);
  const isShown = ({ id }: Message) => view.messages.some((message) => message.id === id);
  return {
    ...view,
    messages: [...view.messages, ...waiting.filter((message) => !isShown(message))],
    send: isFree ? view.send : (text) => void enqueue(text),
  };
}

export async function loadHistory<T>(): Promise<T[]> {
  const response = await fetch(`/api/sessions/${session}/messages`);
  return response.json();
}

export function mount(Chat: FunctionComponent): void {
  const root = document.getElementById('root') as HTMLElement;
  createRoot(root).render(createElement(Chat));
}
