// The entry that is on the screen. It is chosen by key, not by index, so a decision of somebody else never moves another entry
// under the finger.

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

import type { Pending } from "./inbox";

/** An entry that appeared by itself cannot be decided for this long: nobody has looked at it yet. */
export const LOOK_MS = 400;

export interface Chosen {
  entry: Pending | undefined;
  at: number;
  /** It appeared by itself just now. */
  isFresh: boolean;
  choose: (index: number) => void;
}

export function useChosen(entries: readonly Pending[]): Chosen {
  const key = useSignal<string | undefined>(undefined);
  const fresh = useSignal<string | undefined>(undefined);
  const wanted = useRef<string | undefined>(undefined);
  const lastAt = useRef(0);
  const found = entries.findIndex((one) => one.key === key.value);
  // The chosen entry is gone: the entry now at its index is shown.
  const at = found >= 0 ? found : Math.max(0, Math.min(lastAt.current, entries.length - 1));
  const entry = entries[at];
  // The same operation with other arguments is another thing to decide.
  const content = entry === undefined ? undefined : `${entry.key} ${entry.digest ?? ""}`;
  const shown = useRef<string | undefined>(undefined);
  const isNew = content !== undefined && content !== shown.current && content !== wanted.current;
  useLayoutEffect(() => {
    lastAt.current = at;
    key.value = entry?.key;
    shown.current = content;
    if (isNew) fresh.value = content;
  }, [content, at]);
  useLayoutEffect(() => {
    if (fresh.value === undefined) return undefined;
    const timer = setTimeout(() => (fresh.value = undefined), LOOK_MS);
    return () => clearTimeout(timer);
  }, [fresh.value]);
  const choose = (index: number) => {
    const next = entries[Math.max(0, Math.min(index, entries.length - 1))];
    if (next === undefined) return;
    wanted.current = `${next.key} ${next.digest ?? ""}`;
    key.value = next.key;
  };
  return { entry, at, isFresh: content !== undefined && (isNew || fresh.value === content), choose };
}
