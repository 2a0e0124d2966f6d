import type { ReactNode } from 'react';
import { useTheme } from '../use-theme.ts';
import { Emblem, MoonIcon, PlusIcon, SunIcon } from './icons.tsx';

export function Header({ onNewChat }: { onNewChat(): void }) {
  const { theme, toggle } = useTheme();
  const next = theme === 'dark' ? 'light' : 'dark';
  return (
    <header className="flex items-center justify-between border-b border-line px-4 py-2.5 sm:px-6">
      <h1 className="flex items-center gap-2.5 font-serif text-xl leading-none font-semibold tracking-tight">
        <Emblem />
        <span className="flex items-baseline gap-3.5">
          Sabir
          <span className="font-sans text-[0.8125rem] font-normal tracking-normal text-ink-soft max-sm:hidden lg:max-xl:hidden">
            any agent in, any chat out
          </span>
        </span>
      </h1>
      <div className="flex items-center gap-1">
        <HeaderButton label="New chat" onClick={onNewChat}>
          <PlusIcon />
          <span className="max-sm:sr-only">New chat</span>
        </HeaderButton>
        <HeaderButton label={`Switch to ${next} colours`} onClick={toggle}>
          {theme === 'dark' ? <SunIcon /> : <MoonIcon />}
        </HeaderButton>
      </div>
    </header>
  );
}

function HeaderButton({
  label,
  onClick,
  children,
}: {
  label: string;
  onClick(): void;
  children: ReactNode;
}) {
  return (
    <button
      aria-label={label}
      className="flex h-9 min-w-9 items-center justify-center gap-1.5 rounded-full px-2.5 text-sm text-ink-soft hover:bg-sunken hover:text-ink"
      onClick={onClick}
      title={label}
      type="button"
    >
      {children}
    </button>
  );
}
