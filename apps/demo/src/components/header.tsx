import type { ReactNode } from 'react';
import { useTheme } from '../use-theme.ts';
import { Emblem, MenuIcon, MoonIcon, PlusIcon, SunIcon } from './icons.tsx';

type HeaderProps = {
  onNewChat(): void;
  /** Opens the list of chats, where the window is too narrow to show it. The list has a button for a new chat, too. */
  onMenu?(): void;
};

export function Header({ onNewChat, onMenu }: HeaderProps) {
  const { theme, toggle } = useTheme();
  const next = theme === 'dark' ? 'light' : 'dark';
  return (
    <header className="flex items-center justify-between border-b border-line px-4 py-2.5 sm:px-6">
      <div className="flex items-center gap-1">
        {onMenu ? (
          <div className="-ml-2 lg:hidden">
            <HeaderButton label="Chats" onClick={onMenu}>
              <MenuIcon />
            </HeaderButton>
          </div>
        ) : null}
        <h1 className="flex items-center gap-2.5 font-serif text-xl leading-none font-semibold tracking-tight">
          <Emblem />
          <span className="flex items-baseline gap-3.5">
            Sabir
            <span className="font-sans text-[0.8125rem] font-normal tracking-normal text-ink-soft max-sm:hidden lg:max-xl:hidden">
              any agent in, any chat out
            </span>
          </span>
        </h1>
      </div>
      <div className="flex items-center gap-1">
        <div className={onMenu ? 'lg:hidden' : ''}>
          <HeaderButton label="New chat" onClick={onNewChat}>
            <PlusIcon />
            <span className="max-sm:sr-only">New chat</span>
          </HeaderButton>
        </div>
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
