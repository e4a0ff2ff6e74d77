// Numbers and times in few characters.

import { signal } from "@preact/signals";

/** Ticks once a second, so that ages grow. */
export const now = signal(Date.now());

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === "visible") now.value = Date.now();
  }, 1_000);
}

export function age(sinceMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.floor((nowMs - sinceMs) / 1_000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)}h ${Math.floor((seconds % 3_600) / 60)}m`;
  return `${Math.floor(seconds / 86_400)}d ${Math.floor((seconds % 86_400) / 3_600)}h`;
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1_000)} s`;
}

export function count(value: number): string {
  if (value < 1_000) return String(value);
  if (value < 1_000_000) return `${(value / 1_000).toFixed(value < 10_000 ? 1 : 0)}k`;
  return `${(value / 1_000_000).toFixed(1)}M`;
}

/** Of characters, which are mostly bytes. */
export function size(length: number): string {
  if (length < 1_000) return `${length} B`;
  return length < 1_000_000 ? `${(length / 1_000).toFixed(length < 10_000 ? 1 : 0)} kB` : `${(length / 1_000_000).toFixed(1)} MB`;
}

/** An amount in millionths of the currency of the host's price table. */
export function money(micros: number): string {
  const whole = micros / 1_000_000;
  if (whole === 0) return "0";
  if (whole < 0.01) return "<0.01";
  return whole < 1_000 ? whole.toFixed(2) : Math.round(whole).toLocaleString("en");
}

export function shortId(id: string): string {
  return id.slice(-6);
}

export function shortPath(path: string): string {
  const parts = path.split("/").filter((part) => part !== "");
  return parts.length <= 2 ? path : `…/${parts.slice(-2).join("/")}`;
}

/** The time of day, and the day when it is another one. */
export function moment(ms: number): string {
  const at = new Date(ms);
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? at.toLocaleTimeString() : at.toLocaleString();
}
