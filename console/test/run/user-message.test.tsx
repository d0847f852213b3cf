import type { UserPart } from "@runwire/client";
import { act } from "react";
import { createRoot } from "react-dom/client";
import { describe, expect, it } from "vitest";
import { UserMessage } from "../../src/run/conversation/UserMessage";
import { TextProvider } from "../../src/text";

async function shown(text: string): Promise<HTMLElement> {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const frame = document.body.appendChild(document.createElement("div"));
  const part = { kind: "user", id: "u", text } as UserPart;
  await act(async () => createRoot(frame).render(<TextProvider><UserMessage part={part} /></TextProvider>));
  return frame;
}

describe("a user message", () => {
  it("of normal length is shown completely", async () => {
    const frame = await shown("What can I do in Hangzhou on Saturday?");
    expect(frame.querySelector("[data-collapsed], button")).toBeNull();
  });

  it("that is long or has many lines is collapsed until it is expanded", async () => {
    for (const text of ["很长".repeat(1000), "line\n".repeat(30)]) {
      const frame = await shown(text);
      expect(frame.querySelector("[data-collapsed]")?.textContent).toBe(text);
      await act(async () => frame.querySelector("button")?.click());
      expect(frame.querySelector("[data-collapsed], button")).toBeNull();
      expect(frame.querySelector("p")?.textContent).toBe(text);
    }
  });
});
