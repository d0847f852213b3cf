import { Window } from "happy-dom";

// Only the globals that React needs: fetch, signals and streams remain those of Node.js.
const window = new Window({ url: "http://localhost/" });
const names = ["document", "navigator", "HTMLElement", "HTMLIFrameElement", "Element", "Node", "Text", "MutationObserver", "getComputedStyle", "requestAnimationFrame", "cancelAnimationFrame"] as const;
Object.assign(globalThis, { window });
for (const name of names) {
  const value = window[name] as unknown;
  const isPlainFunction = typeof value === "function" && /^[a-z]/.test(name);
  Object.defineProperty(globalThis, name, { value: isPlainFunction ? (value as () => unknown).bind(window) : value, configurable: true, writable: true });
}

/** Sets the visibility of the page. */
export function setVisible(isVisible: boolean): void {
  Object.defineProperty(window.document, "hidden", { value: !isVisible, configurable: true });
  window.document.dispatchEvent(new window.Event("visibilitychange"));
}
