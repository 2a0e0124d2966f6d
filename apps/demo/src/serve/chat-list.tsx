import { CrossIcon, PlusIcon } from '../components/icons.tsx';
import type { KnownChat } from './known-chats.ts';

type ChatListProps = {
  chats: readonly KnownChat[];
  current: string;
  onOpen(id: string): void;
  onNew(): void;
  onForget(id: string): void;
};

/** The chats of this browser, by their first message. */
export function ChatList({ chats, current, onOpen, onNew, onForget }: ChatListProps) {
  return (
    <nav aria-label="Chats" className="grid h-full grid-rows-[auto_minmax(0,1fr)] gap-3 p-3">
      <button
        className="flex items-center gap-2 rounded-xl border border-line bg-raised px-3.5 py-2.5 text-sm hover:border-sea"
        onClick={onNew}
        type="button"
      >
        <PlusIcon />
        New chat
      </button>
      {chats.length === 0 ? (
        <p className="px-3.5 py-2 text-sm leading-relaxed text-ink-soft">
          Your chats will be listed here, by their first message.
        </p>
      ) : (
        <ul className="-m-1 grid grid-cols-[minmax(0,1fr)] content-start gap-0.5 p-1 overflow-y-auto [scrollbar-width:thin]">
          {chats.map(({ id, title }) => (
            <li className="group relative" key={id}>
              <button
                aria-current={id === current ? 'page' : undefined}
                className="w-full truncate rounded-lg py-2 pr-9 pl-3.5 text-left text-sm text-ink-soft outline-offset-[-2px] hover:bg-line/50 hover:text-ink aria-[current]:bg-chosen aria-[current]:text-ink aria-[current]:shadow-[0_1px_2px_var(--shadow)]"
                onClick={() => onOpen(id)}
                title={title}
                type="button"
              >
                {title}
              </button>
              <button
                aria-label={`Remove from this list: ${title}`}
                className="absolute top-1/2 right-1 grid size-7 -translate-y-1/2 place-items-center rounded-md text-ink-soft opacity-0 outline-offset-[-2px] group-hover:opacity-100 hover:text-ink focus-visible:opacity-100 [@media(hover:none)]:opacity-100"
                onClick={() => onForget(id)}
                title="Remove from this list"
                type="button"
              >
                <CrossIcon />
              </button>
            </li>
          ))}
        </ul>
      )}
    </nav>
  );
}
