import type { Page } from 'playwright-core';

export type TurnRecord = {
  /** The input is what the card said while the tool ran. */
  tools: Array<{ name: string; input: string; states: string[] }>;
  steps: Array<{ node: string; states: string[] }>;
  thoughts: Array<{ openLengths: number[]; followedBy: string }>;
  /** Of the text that answers, each time it grew. */
  writerLengths: number[];
};

/**
 * Watches the page from inside for one turn. Some states last a tenth of a second, and asking
 * from outside would miss them.
 */
export function recordTurn(page: Page): Promise<TurnRecord> {
  return page.evaluate(() => {
    const answers = () =>
      document.querySelectorAll<HTMLElement>('[role=tabpanel]:not([hidden]) [data-role=assistant]');
    const before = answers().length;
    const record: TurnRecord = { tools: [], steps: [], thoughts: [], writerLengths: [] };
    const pushNew = <T>(list: T[], value: T) => {
      if (list.at(-1) !== value) list.push(value);
    };
    const observe = () => {
      const answer = answers()[before];
      if (!answer) return;
      const all = (selector: string) => [...answer.querySelectorAll<HTMLElement>(selector)];
      for (const [index, card] of all('[data-part=tool]').entries()) {
        const [name = '', input = ''] = [
          ...card.querySelectorAll('button .truncate, .font-mono'),
        ].map((element) => element.textContent);
        record.tools[index] ??= { name, input, states: [] };
        if (card.dataset.state === 'running') record.tools[index].input = input;
        pushNew(record.tools[index].states, card.dataset.state ?? '');
      }
      for (const [index, step] of all('[data-node], [data-agent]').entries()) {
        const { node = step.dataset.agent ?? '' } = step.dataset;
        record.steps[index] ??= { node, states: [] };
        pushNew(record.steps[index].states, step.dataset.status ?? '');
      }
      for (const [index, thought] of all('[data-part=reasoning]').entries()) {
        record.thoughts[index] ??= { openLengths: [], followedBy: '' };
        const next = thought.nextElementSibling as HTMLElement | null;
        record.thoughts[index].followedBy = next?.dataset.part ?? '';
        const isOpen = thought.querySelector('button')?.ariaExpanded === 'true';
        const body = thought.querySelector('.prose')?.textContent ?? '';
        if (isOpen) pushNew(record.thoughts[index].openLengths, body.length);
      }
      const length = all(
        '[data-node=writer] [data-part=text], [data-agent=Research] [data-part=text]',
      ).reduce((sum, { textContent }) => sum + (textContent?.length ?? 0), 0);
      if (length > 0) pushNew(record.writerLengths, length);
    };
    const observer = new MutationObserver(observe);
    observer.observe(document.body, {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
    });
    return new Promise<TurnRecord>((resolve) => {
      const poll = setInterval(() => {
        const answer = answers()[before];
        if (answer?.getAttribute('aria-busy') !== 'false') return;
        clearInterval(poll);
        observer.disconnect();
        resolve(record);
      }, 100);
    });
  });
}
