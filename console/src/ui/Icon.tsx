import type { SVGProps } from "react";

/** SVG path of each icon on a grid of 16. */
const paths = {
  runs: "M2.5 4h11M2.5 8h7M2.5 12h9",
  inbox: "M2.5 9.5 4.3 3.6h7.4l1.8 5.9v3a.9.9 0 0 1-.9.9H3.4a.9.9 0 0 1-.9-.9zM2.5 9.5h3.2l.8 1.6h3l.8-1.6h3.2",
  threads: "M3.4 3h9.2c.5 0 .9.4.9.9v6.2c0 .5-.4.9-.9.9H8l-3 2.5V11H3.4a.9.9 0 0 1-.9-.9V3.9c0-.5.4-.9.9-.9z",
  agents: "M4 5.5h8c.6 0 1 .4 1 1v5.5c0 .6-.4 1-1 1H4c-.6 0-1-.4-1-1V6.5c0-.6.4-1 1-1zM8 5.5V2.8M6.2 8.8v.8M9.8 8.8v.8",
  check: "m3.5 8.4 3 3 6-6.6",
  cross: "m4.5 4.5 7 7m0-7-7 7",
  minus: "M4 8h8",
  plus: "M8 3.5v9M3.5 8h9",
  pause: "M6 4.5v7M10 4.5v7",
  stop: "M4.5 4.5h7v7h-7z",
  play: "m5.5 3.8 6.5 4.2-6.5 4.2z",
  retry: "M12.5 6.5A5 5 0 1 0 13 8.7M12.8 3.3v3.4H9.4",
  chevron: "m6 4 4 4-4 4",
  chevronDown: "m4 6 4 4 4-4",
  arrowUp: "M8 13V3.5M4 7l4-4 4 4",
  arrowDown: "M8 3v9.5M4 9l4 4 4-4",
  arrowRight: "M3 8h9.5M9 4l4 4-4 4",
  arrowLeft: "M13 8H3.5M7 4 3 8l4 4",
  copy: "M6 5.5h6.5v7.5H6zM4 10.5H3.5V3H10v.5",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3l3.2 3.2",
  external: "M6.5 3.5h-3v9h9v-3M9 3h4v4M12.8 3.2 7.5 8.5",
  download: "M8 2.5v7.5M4.8 7 8 10.2 11.2 7M3 13h10",
  tool: "M10.2 2.8a3.3 3.3 0 0 0-3.9 4.3L2.8 10.6a1.5 1.5 0 0 0 2.1 2.2l3.6-3.6a3.3 3.3 0 0 0 4.3-3.9l-2 2-2-.6-.6-2z",
  thought: "M5.8 11.2a4.3 4.3 0 1 1 4.4 0v1.3H5.8zM6.5 14.3h3",
  branch: "M5 3.5v9M5 9.5c0-2.5 6-1.5 6-4.5M5 4.8a1.3 1.3 0 1 0 0-2.6 1.3 1.3 0 0 0 0 2.6zM11 4.8a1.3 1.3 0 1 0 0-2.6 1.3 1.3 0 0 0 0 2.6zM5 13.8a1.3 1.3 0 1 0 0-2.6 1.3 1.3 0 0 0 0 2.6z",
  clock: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM8 5v3.2l2 1.3",
  warning: "M8 2.8 14 13H2zM8 6.8v2.7M8 11.3v.1",
  info: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM8 7.3v3.4M8 5.3v.1",
  form: "M3.5 2.5h9v11h-9zM5.8 5.5h4.4M5.8 8h4.4M5.8 10.5h2.2",
  shield: "M8 2.3 13 4v3.8c0 3-2.1 5-5 5.9-2.9-.9-5-2.9-5-5.9V4zM5.8 7.9l1.6 1.6 2.9-3.1",
  sun: "M8 10.7a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4zM8 1.8v1.3M8 12.9v1.3M1.8 8h1.3M12.9 8h1.3M3.6 3.6l.9.9M11.5 11.5l.9.9M3.6 12.4l.9-.9M11.5 4.5l.9-.9",
  moon: "M13 9.6A5.5 5.5 0 0 1 6.4 3a5.5 5.5 0 1 0 6.6 6.6z",
  screen: "M2.5 3.5h11v7.5h-11zM6 13.5h4M8 11v2.5",
  language: "M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zM2.7 8h10.6M8 2.5c3.3 3.5 3.3 7.5 0 11-3.3-3.5-3.3-7.5 0-11z",
  keyboard: "M2 4.5h12v7H2zM4.5 7h.1M7 7h.1M9.5 7h.1M11.8 7h.1M5.5 9.3h5",
  trash: "M3 4.5h10M6.3 4.3V2.8h3.4v1.5M4.3 4.5l.6 8.7h6.2l.6-8.7",
  more: "M4 8h.1M8 8h.1M12 8h.1",
  send: "m2.8 7.6 10.7-4.7-3.6 10.5-2.5-4zM7.4 9.4 13.5 2.9",
  filter: "M2.5 4h11M4.5 8h7M6.5 12h3",
  image: "M2.5 3h11v10h-11zM2.5 11l3.3-3.3 2.5 2.5 2-2 3.2 3.2M10.6 6h.1",
  table: "M2.5 3h11v10h-11zM2.5 6.3h11M2.5 9.6h11M6.5 6.3V13",
  chart: "M3 13V8.5M8 13V3.5M13 13V6.5",
} as const;

/** The name of an icon. */
export type IconName = keyof typeof paths;

interface IconProps extends SVGProps<SVGSVGElement> {
  name: IconName;
  size?: number;
}

/** A decorative icon, hidden from screen readers. */
export function Icon({ name, size = 16, ...rest }: IconProps) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.4}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      {...rest}
    >
      <path d={paths[name]} />
    </svg>
  );
}
