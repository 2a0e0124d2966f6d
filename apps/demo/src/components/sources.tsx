import type { Source } from '../to-sources.ts';

/** What the answer was taken from. Every link says where it leads before anybody follows it. */
export function Sources({ sources }: { sources: readonly Source[] }) {
  return (
    <section aria-label="Sources" className="mt-6" data-part="sources">
      <h3 className="text-xs text-ink-soft">Sources</h3>
      <ol className="mt-1.5 grid list-decimal gap-1 pl-5 text-sm marker:text-ink-soft marker:tabular-nums">
        {sources.map(({ key, title, link, note }) => (
          <li className="pl-1 wrap-anywhere" key={key}>
            {link ? (
              <a
                className="text-sea underline decoration-sea/35 underline-offset-3 hover:decoration-sea"
                href={link.url}
                rel="noopener noreferrer"
                target="_blank"
              >
                {title}
              </a>
            ) : (
              title
            )}{' '}
            <span className="ml-1.5 text-xs text-ink-soft">{link?.host ?? note}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
