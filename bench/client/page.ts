/** What both pages do alike: show the messages, count the renders, and ask when they are told to. */
import { createElement as h } from 'react';
import { createRoot } from 'react-dom/client';
import type { PageCount } from './browser.ts';

type Shown = {
  messages: Array<{ id: string; parts: Array<{ type: string; text?: string }> }>;
  status: string;
  /** Resolves when the answer is over. */
  ask(): Promise<void>;
};

export const params = new URLSearchParams(location.search);

const count: Omit<PageCount, 'shown'> = { renders: 0, longTasks: 0, longTaskMs: 0 };

new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) {
    count.longTasks++;
    count.longTaskMs += duration;
  }
}).observe({ type: 'longtask' });

function Page({ useShown }: { useShown: () => Shown }) {
  const { messages, status, ask } = useShown();
  count.renders++;
  const askAndTell = async (): Promise<PageCount> => {
    Object.assign(count, { renders: 0, longTasks: 0, longTaskMs: 0 });
    await ask();
    // The last render, and what the observer has to say of it.
    await new Promise((resolve) => setTimeout(resolve, 200));
    return { ...count, shown: document.body.textContent.length };
  };
  Object.assign(window, { ask: askAndTell });
  return h(
    'ol',
    { 'data-status': status },
    messages.map(({ id, parts }) => h('li', { key: id }, parts.map(({ text }) => text).join(''))),
  );
}

export function startPage(useShown: () => Shown): void {
  createRoot(document.getElementById('root') as HTMLElement).render(h(Page, { useShown }));
}
