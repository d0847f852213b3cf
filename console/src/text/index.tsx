import { createContext, use, useCallback, useLayoutEffect, useMemo, useState, type ReactNode } from "react";
import { storeSetting, loadSetting } from "../shell/localSettings";
import { en, type Dictionary } from "./en";
import { formatFor, type Format, type Language } from "./format";
import { zh } from "./zh";

export type { Dictionary, Format, Language };

/** The dictionaries of all languages. */
export const dictionaries: Record<Language, Dictionary> = { en, zh };

const formats: Partial<Record<Language, Format>> = {};

/** The current language: its texts, formats and setter. */
export interface Text {
  language: Language;
  t: Dictionary;
  format: Format;
  setLanguage(language: Language): void;
}

const TextContext = createContext<Text | null>(null);

/** Returns the stored language, else the preferred one of the browser. */
export function chooseLanguage(stored: string | null, preferred: readonly string[]): Language {
  if (stored === "en" || stored === "zh") return stored;
  for (const tag of preferred) {
    const name = tag.toLowerCase().split("-")[0];
    if (name === "zh") return "zh";
    if (name === "en") return "en";
  }
  return "en";
}

/** Provides the texts and formats of the current language. */
export function TextProvider({ children }: { children: ReactNode }) {
  const [language, choose] = useState(() => chooseLanguage(loadSetting("language"), navigator.languages));
  useLayoutEffect(() => {
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  }, [language]);
  const setLanguage = useCallback((next: Language) => {
    storeSetting("language", next);
    choose(next);
  }, []);
  const text = useMemo<Text>(
    () => ({ language, t: dictionaries[language], format: (formats[language] ??= formatFor(language)), setLanguage }),
    [language, setLanguage],
  );
  return <TextContext value={text}>{children}</TextContext>;
}

/** Returns the texts and formats of the current language. */
export function useText(): Text {
  const text = use(TextContext);
  if (text === null) throw new Error("useText outside of TextProvider");
  return text;
}
