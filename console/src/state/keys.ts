// Keys of the whole page and of the page that is shown. Nothing happens while somebody types.

import { useLayoutEffect } from "preact/hooks";

type Handler = () => void;
export type Keys = Record<string, Handler>;

const stack: Keys[] = [];

/** Keys that may be held down: they move. Every other key acts once for each time it is pressed. */
const HELD = new Set(["j", "k", "ArrowDown", "ArrowUp"]);

export function startKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.repeat && !HELD.has(event.key)) return;
    // A key must not act on the page behind an open dialog.
    if (document.querySelector("dialog[open]") !== null) return;
    const target = event.target as HTMLElement;
    const isTyping = target.matches("input, textarea, select, [contenteditable]");
    if (isTyping && event.key !== "Escape") return;
    if (isTyping) target.blur();
    // A focused button or link keeps its own Enter and Space.
    if ((event.key === "Enter" || event.key === " ") && target.matches("button, a, summary")) return;
    for (const keys of stack.toReversed()) {
      const handler = keys[event.key];
      if (handler !== undefined) {
        event.preventDefault();
        handler();
        return;
      }
    }
  });
}

export function useKeys(keys: Keys): void {
  // A layout effect, so that no key can act on the page that was shown before.
  useLayoutEffect(() => {
    stack.push(keys);
    return () => {
      stack.splice(stack.indexOf(keys), 1);
    };
  });
}
