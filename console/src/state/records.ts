// The records of a thread as they are stored, oldest first. The end is read first, earlier pages as the person scrolls there, new
// records as they come.

import { batch, signal, type Signal } from "@preact/signals";

import { connection, type Notice } from "../wire/connection";

export interface RecordRow {
  ordinal: number;
  kind: string;
  /** In characters. */
  size: number;
  value: Record<string, unknown>;
  isOpen: Signal<boolean>;
}

/** The largest page that a server gives. */
const PAGE = 100;
/** Pause between a notification and reading, so that many of them cost one request. */
const PAUSE_MS = 400;
/** Limit of pages that one notification leads to. */
const MOST_NEW = 10;

export class RecordsView {
  readonly rows = signal<readonly RecordRow[]>([]);
  readonly problem = signal<string | undefined>(undefined);
  readonly isRead = signal(false);

  #older: string | null = null;
  #isReading = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly id: string) {}

  leave(): void {
    clearTimeout(this.#timer);
  }

  /** The end of the thread. Read again after each reconnect, from the last record that is known. */
  async load(): Promise<void> {
    if (this.rows.peek().length > 0) return this.#readNew();
    try {
      const page = await connection.request("thread/records/list", { threadId: this.id, limit: PAGE });
      this.#older = page.nextCursor;
      batch(() => {
        this.rows.value = page.data.map(rowOf).toReversed();
        this.problem.value = undefined;
        this.isRead.value = true;
      });
    } catch (error) {
      this.problem.value = error instanceof Error ? error.message : String(error);
    }
  }

  async loadOlder(): Promise<void> {
    if (this.#older === null || this.#isReading) return;
    this.#isReading = true;
    try {
      const page = await connection.request("thread/records/list", { threadId: this.id, limit: PAGE, cursor: this.#older });
      this.#older = page.nextCursor;
      this.rows.value = [...page.data.map(rowOf).toReversed(), ...this.rows.peek()];
    } catch {
      // Asked for again by the next scroll.
    } finally {
      this.#isReading = false;
    }
  }

  hear(notice: Notice): void {
    const params = notice.params as { threadId?: string; operation?: { threadId: string } };
    const isMine = params.threadId === this.id || params.operation?.threadId === this.id;
    if (!isMine || notice.method.endsWith("elta")) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#readNew();
    }, PAUSE_MS);
  }

  async #readNew(): Promise<void> {
    const last = this.rows.peek().at(-1);
    if (last === undefined) return this.load();
    try {
      let cursor: string | null = String(last.ordinal + 1);
      for (let pages = 0; cursor !== null && pages < MOST_NEW; pages += 1) {
        const page: { data: unknown[]; nextCursor: string | null } = await connection.request("thread/records/list", {
          threadId: this.id, limit: PAGE, sortDirection: "asc", cursor,
        });
        const known = this.rows.peek().at(-1)?.ordinal ?? -1;
        const added = page.data.map(rowOf).filter(({ ordinal }) => ordinal > known);
        if (added.length > 0) this.rows.value = [...this.rows.peek(), ...added];
        cursor = page.nextCursor;
      }
    } catch {
      // The rows stay; the next notification or connection reads on.
    }
  }
}

function rowOf(data: unknown): RecordRow {
  const value = data as Record<string, unknown>;
  return {
    ordinal: Number(value["ordinal"]),
    kind: String(value["kind"] ?? "record"),
    size: JSON.stringify(value).length,
    value,
    isOpen: signal(false),
  };
}

/** The view on the screen, if there is one. */
const shown = signal<RecordsView | undefined>(undefined);

/** Begins to show a view. Returns the function that ends it. */
export function show(view: RecordsView): () => void {
  shown.value = view;
  if (connection.state.peek().type === "ready") void view.load();
  return () => {
    view.leave();
    if (shown.peek() === view) shown.value = undefined;
  };
}

export function startRecords(): void {
  connection.onReady(() => void shown.peek()?.load());
  connection.onNotice((notice) => shown.peek()?.hear(notice));
}

const MAX_LINE = 240;

/** One line for a record. Kinds that are not known here get their turn. */
export function lineOf({ kind, value }: RecordRow): string {
  const field = (name: string): Record<string, unknown> => (value[name] ?? {}) as Record<string, unknown>;
  const words = (...parts: unknown[]) => parts.filter((part) => typeof part === "string" || typeof part === "number").join(" ");
  const line = () => {
    const item = field("item");
    switch (kind) {
      case "threadItem":
      case "responseItem":
        return words(item["type"], item["role"], item["name"], item["status"], textOf(item));
      case "operation":
        return words(value["tool"], value["state"], String(value["operationId"]).split(":").at(-1));
      case "turnEnded":
        return words(value["status"], value["turnId"]);
      case "sessionMeta":
        return words(field("meta")["cwd"], field("meta")["cliVersion"]);
      case "turnContext":
        return words(field("context")["model"], field("context")["cwd"]);
      case "tokenUsage":
        return words(((field("usage")["total"] ?? {}) as Record<string, unknown>)["totalTokens"], "tokens");
      case "compacted":
        return words(value["summary"]);
      case "metadata":
        return JSON.stringify(value["change"]) ?? "";
      default:
        return words(value["turnId"]);
    }
  };
  return line().slice(0, MAX_LINE);
}

/** The beginning of whatever text an item has. */
function textOf(item: Record<string, unknown>): string {
  const { text, content, command, output, arguments: given } = item;
  for (const one of [text, command, output, given]) if (typeof one === "string") return one.slice(0, MAX_LINE);
  const parts = Array.isArray(content) ? content : [];
  return parts.map((part: unknown) => ((part ?? {}) as { text?: string }).text ?? "").join(" ").slice(0, MAX_LINE);
}
