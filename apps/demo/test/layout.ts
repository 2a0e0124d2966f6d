import type { Page } from 'playwright-core';

type LayoutShift = { value: number; hadRecentInput: boolean };
type Seen = { shift: number; composerTops: Set<number> };

/** From now on notes whatever moves by itself, and where the input is. */
export async function watchLayout(page: Page): Promise<void> {
  await page.evaluate(() => {
    const seen: Seen = { shift: 0, composerTops: new Set() };
    Object.assign(window, { seen });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as unknown as LayoutShift[]) {
        if (!entry.hadRecentInput) seen.shift += entry.value;
      }
    }).observe({ type: 'layout-shift', buffered: true });
    const look = () => {
      const form = document.querySelector('[role=tabpanel]:not([hidden]) form');
      seen.composerTops.add(form?.getBoundingClientRect().top ?? -1);
      requestAnimationFrame(look);
    };
    look();
  });
}

export function seenLayout(page: Page): Promise<{ shift: number; composerTops: number[] }> {
  return page.evaluate(() => {
    const { shift, composerTops } = (window as unknown as { seen: Seen }).seen;
    return { shift, composerTops: [...composerTops] };
  });
}

/** By how much anything is wider than its room. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate(() => {
    const boxes = [document.documentElement, ...document.querySelectorAll('.scroller')];
    return Math.max(...boxes.map((box) => box.scrollWidth - box.clientWidth));
  });
}
