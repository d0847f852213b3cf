import { useCallback, useLayoutEffect, useState } from "react";
import { remember, remembered } from "./memory";

/** What a person chose: the system's theme, or one of two. */
export type Theme = "system" | "light" | "dark";

/** Holds the chosen theme, shows it on the document, and remembers it. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, choose] = useState<Theme>(() => {
    const stored = remembered("theme");
    return stored === "light" || stored === "dark" ? stored : "system";
  });
  useLayoutEffect(() => {
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  const set = useCallback((next: Theme) => {
    remember("theme", next === "system" ? null : next);
    choose(next);
  }, []);
  return [theme, set];
}
