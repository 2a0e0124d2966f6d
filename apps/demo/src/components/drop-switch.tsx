type DropSwitchProps = {
  isOn: boolean;
  /** The id of the line that says more about it. */
  describedBy: string;
  onChange(isOn: boolean): void;
};

/** Cuts this window off from the server, to see what comes of it. */
export function DropSwitch({ isOn, describedBy, onChange }: DropSwitchProps) {
  return (
    <button
      aria-checked={isOn}
      aria-describedby={describedBy}
      className="group flex items-center gap-2 rounded-full py-1 pr-1.5 text-xs text-ink-soft hover:text-ink"
      onClick={() => onChange(!isOn)}
      role="switch"
      type="button"
    >
      <span
        aria-hidden="true"
        className="flex h-4.5 w-8 items-center rounded-full border border-line-strong/60 bg-pill p-0.5 group-aria-checked:justify-end group-aria-checked:border-terracotta group-aria-checked:bg-terracotta"
      >
        <span className="size-3 rounded-full bg-line-strong group-aria-checked:bg-paper" />
      </span>
      Drop my connection
    </button>
  );
}
