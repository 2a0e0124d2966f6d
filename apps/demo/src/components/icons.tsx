import type { ReactNode } from 'react';

function Icon({ children, size = 16 }: { children: ReactNode; size?: number }) {
  return (
    <svg
      aria-hidden="true"
      fill="none"
      height={size}
      stroke="currentColor"
      strokeLinecap="round"
      strokeLinejoin="round"
      strokeWidth="1.6"
      viewBox="0 0 16 16"
      width={size}
    >
      {children}
    </svg>
  );
}

export const ArrowUpIcon = () => (
  <Icon>
    <path d="M8 13V3M3.5 7.5 8 3l4.5 4.5" />
  </Icon>
);

export const ArrowDownIcon = () => (
  <Icon>
    <path d="M8 3v10M3.5 8.5 8 13l4.5-4.5" />
  </Icon>
);

export const StopIcon = () => (
  <Icon>
    <rect fill="currentColor" height="8" rx="1.5" stroke="none" width="8" x="4" y="4" />
  </Icon>
);

export const ChevronIcon = () => (
  <Icon size={14}>
    <path d="m4 6 4 4 4-4" />
  </Icon>
);

export const CheckIcon = () => (
  <Icon size={14}>
    <path d="m3 8.5 3.2 3.2L13 5" />
  </Icon>
);

export const CrossIcon = () => (
  <Icon size={14}>
    <path d="m4 4 8 8M12 4l-8 8" />
  </Icon>
);

export const CopyIcon = () => (
  <Icon size={14}>
    <rect height="8" rx="1.5" width="8" x="5.5" y="5.5" />
    <path d="M3 10.5V4a1.5 1.5 0 0 1 1.5-1.5h6" />
  </Icon>
);

export const RetryIcon = () => (
  <Icon size={14}>
    <path d="M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3" />
  </Icon>
);

export const PlusIcon = () => (
  <Icon>
    <path d="M8 3.5v9M3.5 8h9" />
  </Icon>
);

export const MenuIcon = () => (
  <Icon>
    <path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h7" />
  </Icon>
);

export const PaperclipIcon = () => (
  <Icon>
    <path d="m13 7.3-5.2 5.2a3.2 3.2 0 0 1-4.5-4.5l5.5-5.5a2.1 2.1 0 0 1 3 3L6.4 10.9a1 1 0 0 1-1.5-1.5l4.6-4.6" />
  </Icon>
);

export const PencilIcon = () => (
  <Icon size={14}>
    <path d="M3 13h2.5l7-7L10 3.500l-7 7V13ZM8.500 5 11 7.500" />
  </Icon>
);

export const FileIcon = () => (
  <Icon>
    <path d="M9 2H4.500A1.500 1.500 0 0 0 3 3.500v9A1.500 1.500 0 0 0 4.500 14h7a1.500 1.500 0 0 0 1.500-1.500V6L9 2Zm0 0v4h4" />
  </Icon>
);

export const SunIcon = () => (
  <Icon>
    <circle cx="8" cy="8" r="3" />
    <path d="M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7" />
  </Icon>
);

export const MoonIcon = () => (
  <Icon>
    <path d="M13.5 9.5A5.8 5.8 0 0 1 6.5 2.5a5.8 5.8 0 1 0 7 7Z" />
  </Icon>
);

/** The sun going down behind two waves. */
export function Emblem({ size = 26 }: { size?: number }) {
  return (
    <svg aria-hidden="true" fill="none" height={size} viewBox="0 0 32 32" width={size}>
      <path className="fill-terracotta" d="M7.5 17a8.5 8.5 0 0 1 17 0Z" />
      <g className="stroke-sea" strokeLinecap="round" strokeWidth="2.2">
        <path d="M3 20.5c2.2 0 2.2 2 4.35 2s2.15-2 4.3-2 2.2 2 4.35 2 2.2-2 4.35-2 2.15 2 4.3 2 2.15-2 4.35-2" />
        <path
          d="M7.3 26.2c2.2 0 2.2 2 4.35 2s2.2-2 4.35-2 2.2 2 4.35 2 2.15-2 4.35-2"
          opacity=".6"
        />
      </g>
    </svg>
  );
}
