import type { Intro } from '../intros.ts';

type EmptyStateProps = {
  intro: Intro;
  /** Absent for a person who may only watch. */
  onAsk?: ((message: string) => void) | undefined;
};

/** What a newcomer sees: what this is, what will happen, and ways to begin. */
export function EmptyState({ intro, onAsk }: EmptyStateProps) {
  const { title, text, route, suggestions } = intro;
  return (
    <div className="scroller h-full">
      <div className="mx-auto flex min-h-full w-full max-w-3xl flex-col justify-center px-4 py-6 sm:px-6">
        <h2 className="font-serif text-[2.25rem] leading-[1.1] tracking-[-0.022em] text-balance sm:text-[3.25rem]">
          {title}
        </h2>
        <p className="mt-4 max-w-[34rem] leading-relaxed text-pretty text-ink-soft sm:text-lg sm:leading-relaxed">
          {text}
        </p>

        {route.length > 0 ? (
          <ol className="mt-8 flex sm:mt-11">
            {route.map(({ name, does }, index) => (
              <li className="relative flex-1 pt-8" key={name}>
                <span
                  aria-hidden="true"
                  className="absolute top-0.5 left-0 size-4.5 rounded-full border-[1.5px] border-sea"
                />
                {index < route.length - 1 ? <Passage /> : null}
                <span className="block font-serif text-lg leading-6 font-semibold">{name}</span>
                <span className="block text-xs text-ink-soft sm:text-sm">{does}</span>
              </li>
            ))}
          </ol>
        ) : null}

        {onAsk && suggestions.length > 0 ? (
          <ul className="mt-8 grid gap-2.5 sm:mt-12 sm:grid-cols-2">
            {suggestions.map(({ title: name, message }) => (
              <li key={name}>
                <button
                  className="grid h-full w-full content-start rounded-xl border border-line bg-raised px-4 py-3 text-left hover:border-sea motion-safe:transition-colors"
                  onClick={() => onAsk(message)}
                  type="button"
                >
                  <span className="text-[0.9375rem] font-semibold">{name}</span>
                  <span className="mt-0.5 text-sm leading-snug text-ink-soft max-sm:hidden">
                    {message === name ? 'An error, put kindly, and a retry that works' : message}
                  </span>
                </button>
              </li>
            ))}
          </ul>
        ) : null}
      </div>
    </div>
  );
}

/** The way between two ports, on a gentle swell. */
function Passage() {
  return (
    <svg
      aria-hidden="true"
      className="absolute top-0.5 left-6 h-4.5 w-[calc(100%-1.875rem)] stroke-line-strong/80"
      fill="none"
      preserveAspectRatio="none"
      viewBox="0 0 100 18"
    >
      <path
        d="M0 9c12.5-9 25-9 50 0s37.5 9 50 0"
        strokeDasharray="4 4"
        strokeWidth="1.5"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  );
}
