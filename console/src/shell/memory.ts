const prefix = "runwire.";

/** Gives what this browser remembers under a name; nothing where storage is forbidden. */
export function remembered(name: string): string | null {
  try {
    return localStorage.getItem(prefix + name);
  } catch {
    return null;
  }
}

/** Remembers a small choice in this browser, or forgets it. */
export function remember(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(prefix + name);
    else localStorage.setItem(prefix + name, value);
  } catch {
    // A browser that forbids storage loses the choice, nothing else.
  }
}
