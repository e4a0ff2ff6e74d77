// How diffs are drawn: one column or two. Chosen once, kept by the browser.

import { signal } from "@preact/signals";

const KEY = "oarlock.diffs";

/** Two columns need this much room. */
const wide = matchMedia("(min-width: 900px)");

const isChosen = signal(localStorage.getItem(KEY) === "split");
const isWide = signal(wide.matches);
wide.addEventListener("change", () => (isWide.value = wide.matches));

export function isSideBySide(): boolean {
  return isChosen.value && isWide.value;
}

export function canBeSideBySide(): boolean {
  return isWide.value;
}

export function switchDiffs(): void {
  isChosen.value = !isChosen.peek();
  localStorage.setItem(KEY, isChosen.peek() ? "split" : "unified");
}
