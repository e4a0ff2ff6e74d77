import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface MenuEntry {
  name: string;
  act: () => void;
  isDisabled?: boolean;
  isDanger?: boolean;
}

/** A button with a list of actions. It closes when one is chosen, by Escape, and by a click or the focus going elsewhere. */
export function Menu({ name, entries }: { name: string; entries: MenuEntry[] }): JSX.Element {
  const isOpen = useSignal(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const items = () => [...(box.current?.querySelectorAll<HTMLButtonElement>("[role=menuitem]:not(:disabled)") ?? [])];
  useEffect(() => {
    if (!isOpen.value) return undefined;
    items()[0]?.focus();
    const outside = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) isOpen.value = false;
    };
    addEventListener("pointerdown", outside);
    addEventListener("focusin", outside);
    return () => {
      removeEventListener("pointerdown", outside);
      removeEventListener("focusin", outside);
    };
  }, [isOpen.value]);
  const keys = (event: KeyboardEvent) => {
    if (!isOpen.peek()) return;
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    const move = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") {
      isOpen.value = false;
      if (event.key === "Escape") button.current?.focus();
    } else if (move !== undefined) {
      all.at(move % all.length)?.focus();
    } else {
      return;
    }
    if (event.key !== "Tab") event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="more" ref={box} onKeyDown={keys}>
      <button ref={button} type="button" aria-haspopup="menu" aria-expanded={isOpen.value} onClick={() => (isOpen.value = !isOpen.value)}>
        {name} <span aria-hidden="true">▾</span>
      </button>
      {isOpen.value && (
        <div class="menu" role="menu" aria-label={name}>
          {entries.map((entry) => (
            <button
              type="button"
              role="menuitem"
              tabIndex={-1}
              class={entry.isDanger === true ? "danger" : ""}
              disabled={entry.isDisabled === true}
              onClick={() => { isOpen.value = false; button.current?.focus(); entry.act(); }}
            >
              {entry.name}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
