import { type KeyboardEvent, useRef } from 'react';

type TabListProps<T extends string> = {
  label: string;
  tabs: ReadonlyArray<{ tab: T; note: string }>;
  value: T;
  onChange(tab: T): void;
};

export const toTabId = (tab: string) => `tab-${tab}`;
export const toPanelId = (tab: string) => `panel-${tab}`;

/** Tabs as the keyboard knows them: one stop for all, and arrows between them. */
export function TabList<T extends string>({ label, tabs, value, onChange }: TabListProps<T>) {
  const listRef = useRef<HTMLDivElement>(null);

  const onKeyDown = (event: KeyboardEvent) => {
    const at = tabs.findIndex(({ tab }) => tab === value);
    const target = {
      ArrowLeft: at - 1,
      ArrowRight: (at + 1) % tabs.length,
      Home: 0,
      End: -1,
    }[event.key];
    const next = target === undefined ? undefined : tabs.at(target);
    if (!next || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    onChange(next.tab);
    listRef.current?.querySelector<HTMLElement>(`#${toTabId(next.tab)}`)?.focus();
  };

  return (
    <div
      aria-label={label}
      className="flex rounded-full border border-line bg-sunken p-0.5 text-[0.8125rem]"
      onKeyDown={onKeyDown}
      ref={listRef}
      role="tablist"
    >
      {tabs.map(({ tab, note }) => (
        <button
          aria-controls={toPanelId(tab)}
          aria-selected={tab === value}
          className="flex flex-1 items-baseline justify-center gap-2 rounded-full px-3.5 py-1.5 whitespace-nowrap text-ink-soft lg:py-1 hover:text-ink aria-selected:bg-chosen aria-selected:text-ink aria-selected:shadow-[0_1px_2px_var(--shadow)]"
          id={toTabId(tab)}
          key={tab}
          onClick={() => onChange(tab)}
          role="tab"
          tabIndex={tab === value ? 0 : -1}
          type="button"
        >
          <span className="font-mono">{tab}</span>{' '}
          <span className="text-xs text-ink-soft max-sm:sr-only">{note}</span>
        </button>
      ))}
    </div>
  );
}
