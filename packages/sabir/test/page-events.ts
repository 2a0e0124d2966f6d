/** A page's own events in Node: a real `EventTarget` in place of the window. */
import { getEventListeners } from 'node:events';
import { onTestFinished, vi } from 'vitest';

/** What a page hears when it is shown again, or when its network is back. */
export const PAGE_EVENTS = ['online', 'pageshow', 'visibilitychange'] as const;

export function stubPage() {
  const page = new EventTarget();
  vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
  onTestFinished(() => void vi.unstubAllGlobals());
  return {
    fire: (type: string) => void page.dispatchEvent(new Event(type)),
    listeners: () => PAGE_EVENTS.flatMap((type) => getEventListeners(page, type)).length,
  };
}
