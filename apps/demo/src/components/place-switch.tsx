import type { Place } from '../transports.ts';

const PLACES: Array<{ place: Place; label: string }> = [
  { place: 'server', label: 'Server' },
  { place: 'tab', label: 'This tab' },
  { place: 'gateway', label: 'Gateway' },
];

type PlaceSwitchProps = {
  value: Place;
  /** The id of the line that says more about what is chosen. */
  describedBy: string;
  onChange(place: Place): void;
};

/** Where the next message is worked on: behind a route, in this very page, or behind the gateway. */
export function PlaceSwitch({ value, describedBy, onChange }: PlaceSwitchProps) {
  return (
    <fieldset aria-describedby={describedBy} className="flex items-center gap-2 text-xs">
      <legend className="float-left mr-2 py-1 text-ink-soft max-[24rem]:sr-only">Run on</legend>
      <div className="flex rounded-full bg-pill p-0.5">
        {PLACES.map(({ place, label }) => (
          <label
            className="cursor-pointer rounded-full px-2.5 py-1 whitespace-nowrap text-ink-soft has-checked:bg-chosen has-checked:text-ink has-checked:shadow-[0_1px_2px_var(--shadow)] has-focus-visible:outline-2 has-focus-visible:outline-sea"
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
