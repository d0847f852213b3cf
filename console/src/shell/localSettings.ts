const prefix = "runwire.";

/** Returns a setting from local storage; null without storage. */
export function loadSetting(name: string): string | null {
  try {
    return localStorage.getItem(prefix + name);
  } catch {
    return null;
  }
}

/** Stores a setting in local storage; null removes it. */
export function storeSetting(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(prefix + name);
    else localStorage.setItem(prefix + name, value);
  } catch {
    // Without local storage, the setting is lost on reload.
  }
}
