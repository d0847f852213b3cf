/** The languages of the console. */
export type Language = "en" | "zh";

/** Formats numbers, times and durations of a language. */
export interface Format {
  /** Number with separators: 12,345. */
  number(value: number): string;
  /** Compact number: 12.3K, 1.2万. */
  short(value: number): string;
  /** Fraction from 0 to 1 as a percentage. */
  percent(value: number): string;
  /** Size in bytes: 3.4 MB. */
  bytes(value: number): string;
  /** Time relative to `now`: 3 minutes ago. */
  ago(at: Date, now: Date): string;
  /** Time of day: 14:03:09. */
  clock(at: Date): string;
  /** Date and time with milliseconds. */
  exact(at: Date): string;
  /** Duration: 820 ms, 4.2 s, 3 min 12 s, 2 h 5 min. */
  duration(milliseconds: number): string;
  /** List: a, b and c. */
  list(items: readonly string[]): string;
}

const locales: Record<Language, string> = { en: "en", zh: "zh-CN" };

const units: Record<Language, { ms: string; s: string; min: string; h: string; d: string; gap: string }> = {
  en: { ms: "ms", s: "s", min: "min", h: "h", d: "d", gap: " " },
  zh: { ms: "毫秒", s: "秒", min: "分", h: "小时", d: "天", gap: " " },
};

/** Creates the formats of a language. Callers should cache them: the formatters are expensive to create. */
export function formatFor(language: Language): Format {
  const locale = locales[language];
  const number = new Intl.NumberFormat(locale);
  const short = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
  const oneDecimal = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
  const percent = new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 0 });
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: language === "zh" ? "narrow" : "long" });
  const clock = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const date = new Intl.DateTimeFormat(locale, { year: "numeric", month: "short", day: "numeric" });
  const monthAndDay = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric" });
  const list = new Intl.ListFormat(locale, { type: "conjunction" });
  const unit = units[language];

  const withUnit = (value: number | string, name: string) => `${value}${unit.gap}${name}`;

  return {
    number: (value) => number.format(value),
    short: (value) => (Math.abs(value) < 10_000 ? number.format(value) : short.format(value)),
    percent: (value) => percent.format(value),
    bytes(value) {
      const names = ["B", "KB", "MB", "GB", "TB"];
      let size = value;
      let at = 0;
      while (size >= 1000 && at < names.length - 1) {
        size /= 1000;
        at += 1;
      }
      return `${oneDecimal.format(size)} ${names[at]}`;
    },
    ago(at, now) {
      const seconds = Math.round((at.getTime() - now.getTime()) / 1000);
      // Past times are truncated, future ones rounded: otherwise "in 7 days" would never be shown.
      const roundOff = seconds > 0 ? Math.round : Math.trunc;
      const distance = Math.abs(seconds);
      if (distance < 10) return relative.format(0, "second");
      if (distance < 60) return relative.format(seconds, "second");
      if (distance < 3600) return relative.format(roundOff(seconds / 60), "minute");
      if (distance < 86_400) return relative.format(roundOff(seconds / 3600), "hour");
      if (distance < 7 * 86_400) return relative.format(roundOff(seconds / 86_400), "day");
      return at.getFullYear() === now.getFullYear() ? monthAndDay.format(at) : date.format(at);
    },
    clock: (at) => clock.format(at),
    exact: (at) => `${date.format(at)} ${clock.format(at)}.${String(at.getMilliseconds()).padStart(3, "0")}`,
    duration(milliseconds) {
      const ms = Math.max(0, milliseconds);
      if (ms < 1000) return withUnit(Math.round(ms), unit.ms);
      // Truncated, not rounded, so that a running clock never shows 60 s.
      if (ms < 10_000) return withUnit(oneDecimal.format(Math.floor(ms / 100) / 10), unit.s);
      const seconds = Math.floor(ms / 1000);
      if (seconds < 60) return withUnit(seconds, unit.s);
      const minutes = Math.floor(seconds / 60);
      const twoUnits = (big: number, bigName: string, small: number, smallName: string) =>
        small === 0 ? withUnit(big, bigName) : `${withUnit(big, bigName)} ${withUnit(small, smallName)}`;
      if (minutes < 60) return twoUnits(minutes, unit.min, seconds % 60, unit.s);
      const hours = Math.floor(minutes / 60);
      if (hours < 24) return twoUnits(hours, unit.h, minutes % 60, unit.min);
      return twoUnits(Math.floor(hours / 24), unit.d, hours % 24, unit.h);
    },
    list: (items) => list.format(items),
  };
}

const english = new Intl.PluralRules("en");

/** Returns the English singular or plural form for a number. */
export function plural(count: number, one: string, other: string): string {
  return english.select(count) === "one" ? one : other;
}
