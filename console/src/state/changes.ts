// The changes of a patch that waits. A host keeps the changes with the operation, but for very long ones; else they are in
// the item, which only the runtime knows until the patch was applied.

import { effect, signal } from "@preact/signals";

import type { FileUpdateChange } from "../../protocol";
import { connection } from "../wire/connection";
import { hold, release } from "./followers";
import { pending, type Pending } from "./inbox";

const found = signal<ReadonlyMap<string, FileUpdateChange[]>>(new Map());
const asked = new Set<string>();
/** The tasks that are followed for the changes of an operation, by its key, until it is decided. */
const followed = new Map<string, string>();

function put(itemId: string, changes: FileUpdateChange[]): void {
  found.value = new Map(found.peek()).set(itemId, changes);
}

export function changesOf(entry: Pending): FileUpdateChange[] | undefined {
  return entry.changes ?? found.value.get(entry.itemId);
}

/** Follows the thread: a suspended turn gets its runtime back, which announces the item again. A live one lists it. */
export async function loadChanges(entry: Pending): Promise<void> {
  if (entry.changes !== undefined || found.peek().has(entry.itemId) || asked.has(entry.key)) return;
  asked.add(entry.key);
  if (!followed.has(entry.key)) hold(entry.taskId);
  followed.set(entry.key, entry.taskId);
  await connection.request("thread/resume", { threadId: entry.taskId, excludeTurns: true, includeOpenItems: true });
  const page = await connection.request("thread/items/list", { threadId: entry.threadId, limit: 100 });
  for (const { item } of page.data) {
    if (item.id === entry.itemId && item.type === "fileChange") put(item.id, item.changes);
  }
}

export function startChanges(): void {
  connection.onReady(() => asked.clear());
  effect(() => {
    for (const [key, taskId] of followed) {
      if (pending.value.has(key)) continue;
      followed.delete(key);
      release(taskId);
    }
  });
  connection.onNotice((notice) => {
    if (notice.method === "item/started" && notice.params.item.type === "fileChange") {
      put(notice.params.item.id, notice.params.item.changes);
    }
  });
}
