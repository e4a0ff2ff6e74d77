// Which page is shown: the fragment of the address.

import { signal } from "@preact/signals";

/** The conversation, the next request to the model, or the records as they are stored. */
export type TaskViewName = "conversation" | "prompt" | "records";

export type Route =
  | { page: "tasks" }
  | { page: "task"; id: string; view: TaskViewName }
  | { page: "inbox" }
  | { page: "new" }
  | { page: "host" };

export const route = signal<Route>({ page: "tasks" });

function read(): Route {
  const [page, id, view] = location.hash.replace(/^#\/?/, "").split("/");
  if (page === "task" && id !== undefined && /^[\w-]{1,64}$/.test(id)) {
    return { page: "task", id, view: view === "prompt" || view === "records" ? view : "conversation" };
  }
  if (page === "inbox" || page === "new" || page === "host") return { page };
  return { page: "tasks" };
}

export function go(hash: string): void {
  location.hash = hash;
}

export function startRoutes(): void {
  route.value = read();
  addEventListener("hashchange", () => (route.value = read()));
}
