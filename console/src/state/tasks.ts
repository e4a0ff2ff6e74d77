// Every task the server has, live. A host tells of every change of a thread's status and of every operation; what it does
// not tell (names, times) is read again for that task; many changes cost one request.

import { batch, computed, signal } from "@preact/signals";

import type { Task, TaskStatus, Thread, ThreadSourceKind } from "../../protocol";
import { connection } from "../wire/connection";

/** A task of a host, or a thread of an app-server in the same form. */
export interface TaskRow {
  id: string;
  /** Set for an agent that another one started. */
  parentId: string | undefined;
  /** Agents of the task, whether or not they are shown. */
  children: number;
  model: string;
  placementId: string | undefined;
  title: string;
  state: TaskStatus;
  /** Set when its last turn failed and nothing came after it. */
  problem: string | undefined;
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
/** Threads of an app-server that count as tasks: all but agents. Without this list the server answers only interactive ones. */
const STARTED_BY_USERS: ThreadSourceKind[] = ["cli", "vscode", "exec", "appServer", "unknown"];

export const tasks = signal<ReadonlyMap<string, TaskRow>>(new Map());
export const isLoading = signal(true);
export const loadProblem = signal<string | undefined>(undefined);
export const showsArchived = signal(false);
/** Agents by task, for tasks that are unfolded. */
export const agents = signal<ReadonlyMap<string, readonly TaskRow[]>>(new Map());

export const sortedTasks = computed(() =>
  [...tasks.value.values()].sort((a, b) => b.updatedAtMs - a.updatedAtMs || (a.id < b.id ? 1 : -1)),
);

export function rowOfTask(task: Task): TaskRow {
  // A task whose last turn failed is at rest for the host, and wants attention all the same.
  const isFailed = task.state === "idle" && task.lastTurn?.status === "failed";
  return {
    id: task.id,
    parentId: task.parentId ?? undefined,
    children: task.children,
    model: task.model ?? "",
    placementId: task.placementId ?? undefined,
    title: task.name ?? task.preview,
    state: isFailed ? "failed" : task.state,
    problem: isFailed ? (task.lastTurn?.error ?? "The last turn failed.") : undefined,
    hasRuntime: task.hasRuntime,
    cwd: task.cwd ?? "",
    labels: task.labels,
    waiting: task.waitingOperations,
    createdAtMs: task.createdAtMs,
    updatedAtMs: task.updatedAtMs,
    isArchived: task.isArchived,
  };
}

/** The thread whose agent started this one. */
export function parentOf(thread: Thread): string | undefined {
  const source = thread.source;
  const agent = typeof source === "object" && "subAgent" in source ? source.subAgent : undefined;
  return typeof agent === "object" && "thread_spawn" in agent ? agent.thread_spawn.parent_thread_id : undefined;
}

function rowOfThread(thread: Thread, isArchived: boolean): TaskRow {
  const isWaiting = thread.status.type === "active" && thread.status.activeFlags.length > 0;
  const states = { notLoaded: "idle", idle: "idle", systemError: "failed", active: isWaiting ? "waiting" : "running" } as const;
  return {
    id: thread.id,
    parentId: parentOf(thread),
    children: 0,
    model: "",
    placementId: undefined,
    title: thread.name ?? thread.preview,
    state: states[thread.status.type],
    problem: undefined,
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
  const page = await connection.request("thread/list", { archived, limit: 100, modelProviders: [], sourceKinds: STARTED_BY_USERS, ...(cursor === null ? {} : { cursor }) });
  return { rows: page.data.map((thread) => rowOfThread(thread, archived)), cursor: page.nextCursor };
}

let generation = 0;

/** Reads all tasks again, newest first, and drops rows that the server does not have any more. */
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

/** Unfolds or folds the agents of a task. */
export async function toggleAgents(id: string): Promise<void> {
  if (agents.peek().has(id)) {
    const next = new Map(agents.peek());
    next.delete(id);
    agents.value = next;
    return;
  }
  await readAgents(id);
}

async function readAgents(id: string): Promise<void> {
  const { data } = await connection.request("task/list", { childrenOf: id, limit: 200 });
  const rows = data.map(rowOfTask).sort((a, b) => a.createdAtMs - b.createdAtMs);
  agents.value = new Map(agents.peek()).set(id, rows);
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
      // An agent is found by the task that started it.
      return parentOf(thread) === undefined ? rowOfThread(thread, tasks.peek().get(id)?.isArchived ?? false) : undefined;
    } catch {
      // A child, or deleted. The next reload sorts it out.
      return undefined;
    }
  };
  const rows = await Promise.all(ids.map(read));
  const found = rows.filter((row): row is TaskRow => row !== undefined && row.isArchived === showsArchived.peek());
  put(found);
  for (const { id } of found) if (agents.peek().has(id)) void readAgents(id).catch(() => undefined);
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
      case "turn/completed":
        touch(notice.params.threadId);
        break;
      case "thread/deleted":
        forget(notice.params.threadId);
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
