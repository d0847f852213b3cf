/** The logo of Runwire. */
export function Logo({ size = 22 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="var(--accent)" />
      <g fill="none" stroke="var(--on-accent)" strokeWidth="2.6" strokeLinecap="round">
        <path d="M6 16h5.5c3.5 0 3.5-6.5 7-6.5S22 16 26 16" />
        <path d="M6 22h20" strokeOpacity="0.55" />
      </g>
    </svg>
  );
}
