import type { Place } from '../transports.ts';

const PLACES: Array<{ place: Place; label: string }> = [
  { place: 'server', label: 'Server' },
  { place: 'tab', label: 'This tab' },
];

/** Where the next message is worked on: behind a route, or in this very page. */
export function PlaceSwitch({ value, onChange }: { value: Place; onChange(place: Place): void }) {
  return (
    <fieldset className="flex items-center gap-2 text-xs">
      <legend className="float-left mr-2 py-1 text-ink-soft">Run on</legend>
      <div className="flex rounded-full bg-pill p-0.5">
        {PLACES.map(({ place, label }) => (
          <label
            className="cursor-pointer rounded-full px-2.5 py-1 text-ink-soft has-checked:bg-chosen has-checked:text-ink has-checked:shadow-[0_1px_2px_var(--shadow)] has-focus-visible:outline-2 has-focus-visible:outline-sea"
            key={place}
          >
            <input
              checked={value === place}
              className="sr-only"
              name="place"
              onChange={() => onChange(place)}
              type="radio"
              value={place}
            />
            {label}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
