import { act } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { useKeys } from "../src/shell/useKeys";

describe("keys", () => {
  let pressed: string[];
  let frame: HTMLElement;
  let root: Root;

  function Probe() {
    const note = (name: string) => () => void pressed.push(name);
    useKeys({ j: note("j"), "?": note("?"), "g r": note("g r"), Enter: note("Enter") });
    return (
      <>
        <input />
        <textarea />
        <select />
        <a href="/x" />
      </>
    );
  }

  const press = (key: string, on: Element = document.body, options: KeyboardEventInit = {}) =>
    on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...options }));

  beforeEach(async () => {
    (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
    pressed = [];
    frame = document.body.appendChild(document.createElement("div"));
    root = createRoot(frame);
    await act(async () => root.render(<Probe />));
  });

  afterEach(async () => {
    await act(async () => root.unmount());
    frame.remove();
  });

  it("work alone and in sequences", () => {
    press("j");
    press("g");
    press("r");
    press("r");
    expect(pressed).toEqual(["j", "g r"]);
  });

  it("are ignored while a person types in an input", () => {
    for (const name of ["input", "textarea", "select"]) press("j", frame.querySelector(name) ?? frame);
    expect(pressed).toEqual([]);
  });

  it("are ignored while a dialog is open", () => {
    const dialog = document.body.appendChild(document.createElement("dialog"));
    dialog.setAttribute("open", "");
    press("j");
    dialog.remove();
    expect(pressed).toEqual([]);
  });

  it("do not override browser shortcuts, or Enter on a link", () => {
    press("j", document.body, { ctrlKey: true });
    press("j", document.body, { metaKey: true });
    press("Enter", frame.querySelector("a") ?? frame);
    expect(pressed).toEqual([]);
    press("Enter");
    expect(pressed).toEqual(["Enter"]);
  });
});
