// Small shapes, drawn here so that they look the same with every font.
import type { Shape } from "../logic/statuses.ts";

const PATHS: Record<Shape | "moon" | "sun" | "system" | "chevron" | "plus" | "minus" | "fit" | "close" | "mark" | "warning", string> = {
  play: "M4 2.5v11l9-5.5z",
  clock: "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM7.2 4.5h1.6v3.3l2.3 1.5-.9 1.3-3-2z",
  pause: "M3.5 2.5h3.3v11H3.5zm5.7 0h3.3v11H9.2z",
  check: "M6.3 12.6 2 8.3l1.5-1.5 2.8 2.8 6.2-6.2L14 4.9z",
  cross: "m8 6.4 3.9-3.9 1.6 1.6L9.6 8l3.9 3.9-1.6 1.6L8 9.6l-3.9 3.9-1.6-1.6L6.4 8 2.5 4.1l1.6-1.6z",
  undo: "M6.5 2 2 6.2l4.5 4.2V7.6h2.7a2.4 2.4 0 0 1 0 4.8H5v2h4.2a4.4 4.4 0 0 0 0-8.8H6.5z",
  slash: "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zm0 2a4.2 4.2 0 0 1 2.4.8L4.6 10.4A4.2 4.2 0 0 1 8 3.8zm0 8.4a4.2 4.2 0 0 1-2.4-.8l5.8-5.8A4.2 4.2 0 0 1 8 12.2z",
  dot: "M8 4.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z",
  hourglass: "M3 1.5h10v2h-1v1.2L9.2 8l2.8 3.3v1.2h1v2H3v-2h1v-1.2L6.8 8 4 4.7V3.5H3z",
  person: "M8 1.8a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM2.5 14.2a5.5 5.5 0 0 1 11 0z",
  moon: "M10.8 10.6A5.5 5.5 0 0 1 5.6 2.4a6 6 0 1 0 8 8 5.5 5.5 0 0 1-2.8.2z",
  sun: "M8 4.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM7.2 1h1.6v2H7.2zm0 12h1.6v2H7.2zM1 7.2h2v1.6H1zm12 0h2v1.6h-2z",
  system: "M1.5 2.5h13v8.5h-13zM3 4v5.5h10V4zM5 12.5h6V14H5z",
  chevron: "m5.5 3 5 5-5 5-1.3-1.3L7.9 8 4.2 4.3z",
  plus: "M7 3h2v4h4v2H9v4H7V9H3V7h4z",
  minus: "M3 7h10v2H3z",
  fit: "M2 2h4.5v2H4v2.5H2zm7.5 0H14v4.5h-2V4H9.500zM2 9.500h2V12h2.500v2H2zm10 0h2V14H9.500v-2H12z",
  close: "m8 6.600 3.600-3.600 1.400 1.400L9.400 8l3.600 3.600-1.400 1.400L8 9.400 4.400 13 3 11.600 6.600 8 3 4.400 4.400 3z",
  warning: "M8 1.200 15.200 14H.800zM7.200 6v4h1.600V6zm0 5v1.600h1.600V11z",
  mark: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zm0 2a5 5 0 1 1 0 10A5 5 0 0 1 8 3zm-1 2v3.400l3 2 1-1.500-2.200-1.500V5z",
};

export type IconName = keyof typeof PATHS;

export const Icon = ({ name, size = 14 }: { name: IconName; size?: number }) => (
  <svg viewBox="0 0 16 16" width={size} height={size} aria-hidden="true" focusable="false">
    <path d={PATHS[name]} fill="currentColor" />
  </svg>
);
