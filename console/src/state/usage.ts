// Tokens and cost of model requests, by the host's own count. A server that counts nothing has no sums.

import { signal } from "@preact/signals";

import type { UsageGrouping, UsageSum } from "../../protocol";
import { connection } from "../wire/connection";

export interface Spent {
  tokens: number;
  micros: number;
}

/** By task. */
export const spent = signal<ReadonlyMap<string, Spent>>(new Map());

const PAUSE_MS = 1_000;
/** With more tasks than this, sums are read less often. */
const MANY = 500;
const LONG_PAUSE_MS = 10_000;
const REFRESH_MS = 20_000;

export function tokensOf(sum: UsageSum): number {
  return sum.inputTokens + sum.outputTokens;
}

export async function sums(groupBy: UsageGrouping, more: { threadId?: string; sinceMs?: number } = {}): Promise<UsageSum[]> {
  if (!connection.isHost) return [];
  return (await connection.request("usage/list", { groupBy, ...more })).data;
}

async function reload(): Promise<void> {
  const found = await sums("task").catch(() => []);
  spent.value = new Map(found.map((sum) => [sum.key, { tokens: tokensOf(sum), micros: sum.costMicros }]));
}

let timer: ReturnType<typeof setTimeout> | undefined;

function soon(): void {
  timer ??= setTimeout(() => {
    timer = undefined;
    void reload();
  }, spent.peek().size > MANY ? LONG_PAUSE_MS : PAUSE_MS);
}

export function startUsage(): void {
  connection.onReady(() => void reload());
  connection.onNotice((notice) => {
    if (notice.method === "thread/status/changed" || notice.method === "turn/completed") soon();
  });
  setInterval(() => {
    if (connection.state.peek().type === "ready" && document.visibilityState === "visible") soon();
  }, REFRESH_MS);
}
