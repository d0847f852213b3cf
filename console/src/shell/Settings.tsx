import { useEffect, useId, useRef, useState } from "react";
import { dictionaries, useText, type Language } from "../text";
import { Icon, IconButton, Segments } from "../ui";
import { useTheme, type Theme } from "./theme";
import style from "./Settings.module.css";

const languages = Object.keys(dictionaries) as Language[];
const themes = [
  { theme: "system", icon: "screen" },
  { theme: "light", icon: "sun" },
  { theme: "dark", icon: "moon" },
] as const;

/** Language and theme, behind one button. */
export function Settings() {
  const { t, language, setLanguage } = useText();
  const [theme, setTheme] = useTheme();
  const [open, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const panel = useId();

  useEffect(() => {
    if (!open) return;
    const outside = (event: Event) => {
      if (event.target instanceof Node && !frame.current?.contains(event.target)) setOpen(false);
    };
    const escape = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      setOpen(false);
      frame.current?.querySelector("button")?.focus();
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    document.addEventListener("keydown", escape);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
      document.removeEventListener("keydown", escape);
    };
  }, [open]);

  return (
    <div ref={frame} className={style["settings"]}>
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
          <Segments<Language>
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
          <Segments<Theme>
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
