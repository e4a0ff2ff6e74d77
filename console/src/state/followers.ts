// Which threads this window follows. Several parts of the page may need the same one, and the server knows one subscription
// for all of them: it ends with the last.

import { connection } from "../wire/connection";

const holders = new Map<string, number>();

export function hold(threadId: string): void {
  holders.set(threadId, (holders.get(threadId) ?? 0) + 1);
}

export function release(threadId: string): void {
  const left = (holders.get(threadId) ?? 0) - 1;
  if (left > 0) {
    holders.set(threadId, left);
    return;
  }
  holders.delete(threadId);
  // Not at an app-server: it would unload the thread and end its turn with the last subscriber.
  if (connection.state.peek().type === "ready" && connection.isHost) {
    void connection.request("thread/unsubscribe", { threadId }).catch(() => undefined);
  }
}
