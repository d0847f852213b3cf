import { describe, expect, it } from "vitest";
import { formatFor, plural } from "../src/text/format";

const en = formatFor("en");
const zh = formatFor("zh");

describe("durations", () => {
  it("have a precision that depends on their length", () => {
    expect(en.duration(0)).toBe("0 ms");
    expect(en.duration(820.4)).toBe("820 ms");
    expect(en.duration(4260)).toBe("4.2 s");
    expect(en.duration(59_999)).toBe("59 s");
    expect(en.duration(192_000)).toBe("3 min 12 s");
    expect(en.duration(120_000)).toBe("2 min");
    expect(en.duration(2 * 3_600_000 + 5 * 60_000)).toBe("2 h 5 min");
    expect(en.duration(50 * 3_600_000)).toBe("2 d 2 h");
    expect(zh.duration(192_000)).toBe("3 分 12 秒");
  });

  it("that are negative are shown as zero", () => {
    expect(en.duration(-5)).toBe("0 ms");
  });
});

describe("times", () => {
  const now = new Date("2026-11-15T12:00:00Z");
  const before = (seconds: number) => new Date(now.getTime() - seconds * 1000);

  it("are relative to now", () => {
    expect(en.ago(before(3), now)).toBe("now");
    expect(en.ago(before(42), now)).toBe("42 seconds ago");
    expect(en.ago(before(119), now)).toBe("1 minute ago");
    expect(en.ago(before(7200), now)).toBe("2 hours ago");
    expect(en.ago(before(-6 * 86_400), now)).toBe("in 6 days");
    expect(zh.ago(before(120), now)).toBe("2分钟前");
  });

  it("that are long ago are dates", () => {
    expect(en.ago(before(30 * 86_400), now)).toBe("Oct 16");
    expect(en.ago(before(400 * 86_400), now)).toBe("Oct 11, 2025");
  });

  it("are exact to the millisecond in the exact format", () => {
    expect(en.exact(new Date(2026, 10, 15, 9, 5, 7, 42))).toBe("Nov 15, 2026 09:05:07.042");
  });
});

describe("numbers", () => {
  it("have separators, and are compact only if they are long", () => {
    expect(en.number(1234567)).toBe("1,234,567");
    expect(en.short(9999)).toBe("9,999");
    expect(en.short(12_345)).toBe("12.3K");
    expect(zh.short(12_345)).toBe("1.2万");
    expect(en.bytes(3_400_000)).toBe("3.4 MB");
    expect(en.percent(0.35)).toBe("35%");
  });

  it("select the singular or plural form", () => {
    expect(plural(1, "run", "runs")).toBe("run");
    expect(plural(0, "run", "runs")).toBe("runs");
  });
});
