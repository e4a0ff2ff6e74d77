// What a patch that waits would change. Its operation names the files; the changes are in the item, which only the runtime
// knows until the patch was applied.

import { signal } from "@preact/signals";

import type { FileUpdateChange } from "../../protocol";
import { connection } from "../wire/connection";
import type { Pending } from "./inbox";

export const changes = signal<ReadonlyMap<string, FileUpdateChange[]>>(new Map());
const asked = new Set<string>();

function put(itemId: string, found: FileUpdateChange[]): void {
  changes.value = new Map(changes.peek()).set(itemId, found);
}

/** Following the thread brings a suspended turn back, whose runtime then announces the item; a live one lists it. */
export async function loadChanges(entry: Pending): Promise<void> {
  if (changes.peek().has(entry.itemId) || asked.has(entry.key)) return;
  asked.add(entry.key);
  await connection.request("thread/resume", { threadId: entry.taskId, excludeTurns: true });
  const page = await connection.request("thread/items/list", { threadId: entry.threadId, limit: 100 });
  for (const { item } of page.data) {
    if (item.id === entry.itemId && item.type === "fileChange") put(item.id, item.changes);
  }
}

export function startChanges(): void {
  connection.onReady(() => asked.clear());
  connection.onNotice((notice) => {
    if (notice.method === "item/started" && notice.params.item.type === "fileChange") {
      put(notice.params.item.id, notice.params.item.changes);
    }
  });
}
