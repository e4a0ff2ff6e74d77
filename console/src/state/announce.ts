// Messages: those that screen readers are told, and those that everybody sees for a moment.

import { signal } from "@preact/signals";

export const announcement = signal("");
export const toast = signal<{ text: string; isProblem: boolean } | undefined>(undefined);

let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  announcement.value = text;
}

export function say(text: string, isProblem = false): void {
  toast.value = { text, isProblem };
  announcement.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => (toast.value = undefined), isProblem ? 9_000 : 3_000);
}

/** Runs something that may fail and says so. Answers whether it went well. */
export async function trying(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), true);
    return false;
  }
}
