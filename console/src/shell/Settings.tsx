import { useEffect, useId, useRef, useState } from "react";
import { dictionaries, useText, type Language } from "../text";
import { Icon, IconButton, SegmentedControl } from "../ui";
import { useTheme, type Theme } from "./useTheme";
import style from "./Settings.module.css";

const languages = Object.keys(dictionaries) as Language[];
const themes = [
  { theme: "system", icon: "screen" },
  { theme: "light", icon: "sun" },
  { theme: "dark", icon: "moon" },
] as const;

/** Menu of the language and the theme. */
export function Settings() {
  const { t, language, setLanguage } = useText();
  const [theme, setTheme] = useTheme();
  const [open, setOpen] = useState(false);
  const container = useRef<HTMLDivElement>(null);
  const panel = useId();

  useEffect(() => {
    if (!open) return;
    const closeOnOutside = (event: Event) => {
      if (event.target instanceof Node && !container.current?.contains(event.target)) setOpen(false);
    };
    const closeOnEscape = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      setOpen(false);
      container.current?.querySelector("button")?.focus();
    };
    document.addEventListener("pointerdown", closeOnOutside);
    document.addEventListener("focusin", closeOnOutside);
    document.addEventListener("keydown", closeOnEscape);
    return () => {
      document.removeEventListener("pointerdown", closeOnOutside);
      document.removeEventListener("focusin", closeOnOutside);
      document.removeEventListener("keydown", closeOnEscape);
    };
  }, [open]);

  return (
    <div ref={container} className={style["settings"]}>
      <IconButton
        icon="language"
        label={t.nav.settings}
        aria-expanded={open}
        aria-controls={panel}
        onClick={() => setOpen(!open)}
      />
      {open && (
        <div id={panel} className={style["panel"]}>
          <p className={style["label"]}>{t.language.label}</p>
          <SegmentedControl<Language>
            label={t.language.label}
            value={language}
            onChange={setLanguage}
            className={style["wide"]}
            options={languages.map((value) => ({
              value,
              name: <span lang={value === "zh" ? "zh-CN" : "en"}>{dictionaries[value].languageName}</span>,
            }))}
          />
          <p className={style["label"]}>{t.theme.label}</p>
          <SegmentedControl<Theme>
            label={t.theme.label}
            value={theme}
            onChange={setTheme}
            className={style["wide"]}
            options={themes.map(({ theme, icon }) => ({
              value: theme,
              title: t.theme[theme],
              name: <Icon name={icon} />,
            }))}
          />
        </div>
      )}
    </div>
  );
}
