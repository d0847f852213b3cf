import { useCallback, useLayoutEffect, useState } from "react";
import { storeSetting, loadSetting } from "./localSettings";

/** The selected theme. */
export type Theme = "system" | "light" | "dark";

/** Returns the theme and its setter; applies it to the document and stores it. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(() => {
    const stored = loadSetting("theme");
    return stored === "light" || stored === "dark" ? stored : "system";
  });
  useLayoutEffect(() => {
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  const set = useCallback((next: Theme) => {
    storeSetting("theme", next === "system" ? null : next);
    setTheme(next);
  }, []);
  return [theme, set];
}
