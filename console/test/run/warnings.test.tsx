import type { Warnings as Found } from "@runwire/client";
import { act } from "react";
import { createRoot } from "react-dom/client";
import { describe, expect, it } from "vitest";
import { Warnings } from "../../src/run/Warnings";
import { TextProvider } from "../../src/text";

async function shown(warnings: Found | undefined): Promise<HTMLElement> {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const frame = document.body.appendChild(document.createElement("div"));
  await act(async () => createRoot(frame).render(<TextProvider><Warnings warnings={warnings} /></TextProvider>));
  return frame;
}

const stage = { seq: 2, times: 3, dialect: "streaming-engine", code: "bad_value", field: "data.stage", section: "§1.3", message: "is `dreaming`", hint: "is `reasoning` meant?" };

describe("the warnings of a run", () => {
  it("are hidden if there are none", async () => {
    expect((await shown(undefined)).textContent).toBe("");
    expect((await shown({ count: 0, first: [] })).textContent).toBe("");
  });

  it("are a collapsed line with their number, which expands to a list", async () => {
    const frame = await shown({ count: 5, first: [stage] });
    const details = frame.querySelector("details");
    expect(details?.open).toBe(false);
    expect(details?.querySelector("summary")?.textContent).toContain("5 warnings");
    const text = details?.textContent ?? "";
    for (const part of ["data.stage", "is `dreaming`", "is `reasoning` meant?", "§1.3", "bad_value", "3 times", "and 2 more"]) {
      expect(text).toContain(part);
    }
  });
});
