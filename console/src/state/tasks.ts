// Every task the server has, live. A host tells of every change of a thread's status and of every operation; what it does
// not tell (names, times) is read again for the task in question, many changes at once.

import { batch, computed, signal } from "@preact/signals";

import type { Task, TaskStatus, Thread } from "../../protocol";
import { connection } from "../wire/connection";

/** A task of a host, or a thread of an app-server in the same form. */
export interface TaskRow {
  id: string;
  title: string;
  state: TaskStatus;
  hasRuntime: boolean;
  cwd: string;
  labels: { [key: string]: string };
  waiting: number;
  createdAtMs: number;
  updatedAtMs: number;
  isArchived: boolean;
}

const PAGE = 200;
/** Read in the background, page after page, up to this many. */
const MAX_TASKS = 20_000;
const REFRESH_MS = 20_000;

export const tasks = signal<ReadonlyMap<string, TaskRow>>(new Map());
export const isLoading = signal(true);
export const loadProblem = signal<string | undefined>(undefined);
export const showsArchived = signal(false);

export const sortedTasks = computed(() =>
  [...tasks.value.values()].sort((a, b) => b.updatedAtMs - a.updatedAtMs || (a.id < b.id ? 1 : -1)),
);

export function rowOfTask(task: Task): TaskRow {
  return {
    id: task.id,
    title: task.name ?? task.preview,
    state: task.state,
    hasRuntime: task.hasRuntime,
    cwd: task.cwd ?? "",
    labels: task.labels,
    waiting: task.waitingOperations,
    createdAtMs: task.createdAtMs,
    updatedAtMs: task.updatedAtMs,
    isArchived: task.isArchived,
  };
}

function rowOfThread(thread: Thread, isArchived: boolean): TaskRow {
  const isWaiting = thread.status.type === "active" && thread.status.activeFlags.length > 0;
  const states = { notLoaded: "idle", idle: "idle", systemError: "failed", active: isWaiting ? "waiting" : "running" } as const;
  return {
    id: thread.id,
    title: thread.name ?? thread.preview,
    state: states[thread.status.type],
    hasRuntime: thread.status.type !== "notLoaded",
    cwd: thread.cwd,
    labels: {},
    waiting: isWaiting ? 1 : 0,
    createdAtMs: thread.createdAt * 1_000,
    updatedAtMs: thread.updatedAt * 1_000,
    isArchived,
  };
}

function put(rows: TaskRow[]): void {
  const next = new Map(tasks.peek());
  for (const row of rows) next.set(row.id, row);
  tasks.value = next;
}

async function readPage(cursor: string | null, archived: boolean): Promise<{ rows: TaskRow[]; cursor: string | null }> {
  if (connection.isHost) {
    const page = await connection.request("task/list", { archived, limit: PAGE, ...(cursor === null ? {} : { cursor }) });
    return { rows: page.data.map(rowOfTask), cursor: page.nextCursor };
  }
  const page = await connection.request("thread/list", { archived, limit: 100, ...(cursor === null ? {} : { cursor }) });
  return { rows: page.data.map((thread) => rowOfThread(thread, archived)), cursor: page.nextCursor };
}

let generation = 0;

/** Reads everything again, the newest first. Rows that are gone go. */
export async function reload(): Promise<void> {
  const mine = ++generation;
  const archived = showsArchived.peek();
  isLoading.value = true;
  const seen = new Map<string, TaskRow>();
  try {
    let cursor: string | null = null;
    do {
      const page: { rows: TaskRow[]; cursor: string | null } = await readPage(cursor, archived);
      if (mine !== generation) return;
      for (const row of page.rows) seen.set(row.id, row);
      // The first page is shown at once.
      if (cursor === null) put(page.rows);
      cursor = page.cursor;
    } while (cursor !== null && seen.size < MAX_TASKS);
    batch(() => {
      tasks.value = seen;
      isLoading.value = false;
      loadProblem.value = undefined;
    });
  } catch (error) {
    if (mine === generation) loadProblem.value = error instanceof Error ? error.message : String(error);
  }
}

const stale = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Reads one task again soon; many notifications about it cost one request. */
export function touch(id: string): void {
  stale.add(id);
  timer ??= setTimeout(() => void refreshStale(), 120);
}

async function refreshStale(): Promise<void> {
  timer = undefined;
  const ids = [...stale].slice(0, 50);
  for (const id of ids) stale.delete(id);
  if (stale.size > 0) timer = setTimeout(() => void refreshStale(), 120);
  const read = async (id: string): Promise<TaskRow | undefined> => {
    try {
      if (connection.isHost) return rowOfTask((await connection.request("task/read", { threadId: id })).task);
      const { thread } = await connection.request("thread/read", { threadId: id, includeTurns: false });
      return rowOfThread(thread, tasks.peek().get(id)?.isArchived ?? false);
    } catch {
      // A child, or gone. The next reload tells.
      return undefined;
    }
  };
  const rows = await Promise.all(ids.map(read));
  put(rows.filter((row): row is TaskRow => row !== undefined && row.isArchived === showsArchived.peek()));
}

export function forget(id: string): void {
  const next = new Map(tasks.peek());
  if (next.delete(id)) tasks.value = next;
}

export function startTasks(): void {
  connection.onReady(() => void reload());
  connection.onNotice((notice) => {
    switch (notice.method) {
      case "thread/started":
        touch(notice.params.thread.id);
        break;
      case "thread/status/changed":
      case "thread/name/updated":
      case "thread/closed":
        touch(notice.params.threadId);
        break;
      case "thread/archived":
      case "thread/unarchived":
        forget(notice.params.threadId);
        touch(notice.params.threadId);
        break;
      case "operation/updated":
        touch(notice.params.operation.taskId);
        break;
      default:
    }
  });
  setInterval(() => {
    if (connection.state.peek().type === "ready" && document.visibilityState === "visible") void reload();
  }, REFRESH_MS);
}
