import { Window } from "happy-dom";

// Only what React needs: fetch, signals and streams stay those of the runtime.
const window = new Window({ url: "http://localhost/" });
const names = ["document", "navigator", "HTMLElement", "HTMLIFrameElement", "Element", "Node", "Text", "MutationObserver", "getComputedStyle", "requestAnimationFrame", "cancelAnimationFrame"] as const;
Object.assign(globalThis, { window });
for (const name of names) {
  const given = window[name] as unknown;
  const isPlainFunction = typeof given === "function" && /^[a-z]/.test(name);
  Object.defineProperty(globalThis, name, { value: isPlainFunction ? (given as () => unknown).bind(window) : given, configurable: true, writable: true });
}

/** Hides the page from the person, or shows it again. */
export function show(isShown: boolean): void {
  Object.defineProperty(window.document, "hidden", { value: !isShown, configurable: true });
  window.document.dispatchEvent(new window.Event("visibilitychange"));
}
