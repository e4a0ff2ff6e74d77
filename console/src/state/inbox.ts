// The inbox: everything that waits for a decision. On a host these are operations, and a decision names the digest of exactly what was shown;
// on an app-server they are its open questions to this connection.

import { computed, signal } from "@preact/signals";

import type {
  CommandExecutionRequestApprovalParams,
  FileChangeRequestApprovalParams,
  FileUpdateChange,
  McpElicitationSchema,
  McpServerElicitationRequestParams,
  Operation,
  OperationDecision,
  PermissionsRequestApprovalParams,
  RequestId,
  ToolRequestApprovalParams,
  ToolRequestUserInputParams,
  ToolRequestUserInputQuestion,
} from "../../protocol";
import { connection, RequestFailed } from "../wire/connection";
import { announce } from "./announce";
import { hold, release } from "./followers";

export type Choice = "approve" | "approveForSession" | "replace" | "retry" | "reject" | "rejectAndStop" | "respond";

/** Questions that are answered by a form. */
export type AskedForm =
  | { type: "fields"; properties: McpElicitationSchema["properties"]; required: string[] }
  | { type: "page"; url: string }
  /** Whether a tool of an MCP server may be called. */
  | { type: "consent" }
  | { type: "permission"; permissions: unknown };

export interface Pending {
  key: string;
  taskId: string;
  threadId: string;
  itemId: string;
  kind: string;
  tool: string;
  /** The program and its arguments, for a command. */
  command: string[] | string | undefined;
  cwd: string | undefined;
  /** Whether a command runs inside the sandbox. */
  isSandboxed: boolean | undefined;
  files: string[] | undefined;
  /** The changes of a patch, where the server keeps them with it. */
  changes: FileUpdateChange[] | undefined;
  questions: ToolRequestUserInputQuestion[] | undefined;
  form: AskedForm | undefined;
  /** Everything, as it is on the wire. */
  arguments: unknown;
  digest: string | undefined;
  reason: string | undefined;
  isUnknown: boolean;
  agentPath: string[];
  choices: Choice[];
  sinceMs: number;
  source: { type: "operation"; operation: Operation } | { type: "question"; id: RequestId; method: string };
}

export const pending = signal<ReadonlyMap<string, Pending>>(new Map());
/** The oldest first: it has waited for longest. */
export const inbox = computed(() => [...pending.value.values()].sort((a, b) => a.sinceMs - b.sinceMs || (a.key < b.key ? -1 : 1)));
export const deciding = signal<ReadonlySet<string>>(new Set());

const CHOICES: Record<string, Choice> = {
  accept: "approve",
  approve: "approve",
  acceptForSession: "approveForSession",
  acceptWithCommandOverride: "replace",
  acceptWithArguments: "replace",
  decline: "reject",
  reject: "reject",
  cancel: "rejectAndStop",
  respond: "respond",
  retry: "retry",
};

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

function strings(value: unknown): string[] | undefined {
  return Array.isArray(value) && value.every((entry) => typeof entry === "string") ? value : undefined;
}

/** The form for a request of an MCP server: fields, or a page to open. */
function formOfServer(request: Record<string, unknown>): AskedForm {
  if (typeof request["url"] === "string") return { type: "page", url: request["url"] };
  const schema = record(request["requestedSchema"]);
  const properties = record(schema["properties"]) as McpElicitationSchema["properties"];
  return { type: "fields", properties, required: strings(schema["required"]) ?? [] };
}

function formOf(kind: string, given: Record<string, unknown>): AskedForm | undefined {
  if (kind === "permission") return { type: "permission", permissions: given["permissions"] };
  if (kind !== "elicitation") return undefined;
  return given["request"] === undefined ? { type: "consent" } : formOfServer(record(given["request"]));
}

export function ofOperation(operation: Operation): Pending {
  const given = record(operation.arguments);
  // A command is replaced by another command; the arguments that a patch has in the store are not its text.
  const hasOther = ["command", "fileChange"].includes(String(operation.type));
  const words = operation.availableDecisions.filter((word) => word !== "acceptWithArguments" || !hasOther);
  const choices = words.map((word) => CHOICES[word]).filter((choice) => choice !== undefined);
  const command = strings(given["command"]) ?? (typeof given["command"] === "string" ? given["command"] : undefined);
  return {
    key: operation.operationId,
    taskId: operation.taskId,
    threadId: operation.threadId,
    itemId: operation.itemId,
    kind: typeof operation.type === "string" ? operation.type : "other",
    tool: operation.namespace === null ? operation.tool : `${operation.namespace}.${operation.tool}`,
    command,
    cwd: typeof given["cwd"] === "string" ? given["cwd"] : undefined,
    isSandboxed: typeof given["sandboxed"] === "boolean" ? given["sandboxed"] : undefined,
    files: strings(given["files"]),
    changes: operation.changes ?? undefined,
    form: operation.state === "proposed" ? formOf(String(operation.type), given) : undefined,
    questions: Array.isArray(given["questions"]) ? (given["questions"] as ToolRequestUserInputQuestion[]) : undefined,
    arguments: operation.arguments,
    digest: operation.argumentsDigest,
    reason: operation.reason ?? undefined,
    isUnknown: operation.state === "unknown",
    agentPath: operation.agentPath,
    choices: [...new Set(choices)],
    sinceMs: operation.createdAtMs,
    source: { type: "operation", operation },
  };
}

/** The decisions of an app-server's question that have a button here. */
function offered(decisions: readonly unknown[] | null | undefined): Choice[] {
  const all: Choice[] = ["approve", "approveForSession", "reject", "rejectAndStop"];
  if (decisions == null) return all;
  const found = decisions.map((one) => (typeof one === "string" ? CHOICES[one] : undefined)).filter((choice) => choice !== undefined);
  // To decline is always possible.
  return all.filter((choice) => found.includes(choice) || choice === "reject");
}

function ofQuestion(id: RequestId, method: string, params: unknown): Pending | undefined {
  const base = {
    key: `question:${String(id)}`,
    isUnknown: false,
    agentPath: ["root"],
    digest: undefined,
    isSandboxed: undefined,
    files: undefined,
    changes: undefined,
    questions: undefined,
    form: undefined,
    arguments: params,
    source: { type: "question" as const, id, method },
  };
  if (method === "item/commandExecution/requestApproval") {
    const asked = params as CommandExecutionRequestApprovalParams;
    return {
      ...base,
      taskId: asked.threadId,
      threadId: asked.threadId,
      itemId: asked.itemId,
      kind: "command",
      tool: "command",
      command: asked.command ?? undefined,
      cwd: asked.cwd ?? undefined,
      reason: asked.reason ?? undefined,
      choices: offered(asked.availableDecisions),
      sinceMs: asked.startedAtMs || Date.now(),
    };
  }
  if (method === "item/tool/requestApproval") {
    const asked = params as ToolRequestApprovalParams;
    return {
      ...base,
      taskId: asked.threadId,
      threadId: asked.threadId,
      itemId: asked.itemId,
      kind: "function",
      tool: asked.namespace == null ? asked.tool : `${asked.namespace}.${asked.tool}`,
      command: undefined,
      cwd: undefined,
      arguments: asked.arguments,
      reason: asked.reason ?? undefined,
      choices: offered(asked.availableDecisions),
      sinceMs: asked.startedAtMs || Date.now(),
    };
  }
  if (method === "item/permissions/requestApproval") {
    const asked = params as PermissionsRequestApprovalParams;
    return {
      ...base,
      taskId: asked.threadId,
      threadId: asked.threadId,
      itemId: asked.itemId,
      kind: "permission",
      tool: "request_permissions",
      command: undefined,
      cwd: asked.cwd,
      arguments: { permissions: asked.permissions },
      form: { type: "permission", permissions: asked.permissions },
      reason: asked.reason ?? undefined,
      choices: ["respond"],
      sinceMs: asked.startedAtMs || Date.now(),
    };
  }
  if (method === "mcpServer/elicitation/request") {
    const asked = params as McpServerElicitationRequestParams;
    const form = formOfServer(record(asked));
    const isCall = form.type === "fields" && Object.keys(form.properties).length === 0;
    return {
      ...base,
      taskId: asked.threadId,
      threadId: asked.threadId,
      itemId: `elicitation:${String(id)}`,
      kind: "elicitation",
      tool: asked.serverName,
      command: undefined,
      cwd: undefined,
      arguments: { server: asked.serverName, message: asked.message, ...record(asked._meta) },
      form: isCall ? { type: "consent" } : form,
      reason: undefined,
      choices: ["respond"],
      sinceMs: Date.now(),
    };
  }
  if (method === "item/fileChange/requestApproval") {
    const asked = params as FileChangeRequestApprovalParams;
    return {
      ...base,
      taskId: asked.threadId,
      threadId: asked.threadId,
      itemId: asked.itemId,
      kind: "fileChange",
      tool: "apply_patch",
      command: undefined,
      cwd: undefined,
      reason: asked.reason ?? undefined,
      choices: ["approve", "approveForSession", "reject", "rejectAndStop"],
      sinceMs: asked.startedAtMs || Date.now(),
    };
  }
  if (method === "item/tool/requestUserInput") {
    const asked = params as ToolRequestUserInputParams;
    return {
      ...base,
      taskId: asked.threadId,
      threadId: asked.threadId,
      itemId: asked.itemId,
      kind: "userInput",
      tool: "question",
      command: undefined,
      cwd: undefined,
      questions: asked.questions,
      reason: undefined,
      choices: ["respond"],
      sinceMs: Date.now(),
    };
  }
  return undefined;
}

function set(entry: Pending): void {
  const known = pending.peek().has(entry.key);
  pending.value = new Map(pending.peek()).set(entry.key, entry);
  if (!known) announce(`A decision is wanted: ${entry.tool}`);
}

function remove(key: string): void {
  const next = new Map(pending.peek());
  if (next.delete(key)) pending.value = next;
}

function hear(operation: Operation): void {
  for (const heard of reading) heard.push(operation);
  if (operation.state === "proposed" || operation.state === "unknown") set(ofOperation(operation));
  else remove(operation.operationId);
}

function questions(): [string, Pending][] {
  return [...pending.peek()].filter(([, entry]) => entry.source.type === "question");
}

/** Operations that were announced while a list is read. They are applied again after it, because the list may be older. */
const reading = new Set<Operation[]>();

/** Reads again what waits in the host's store. Open questions are in no list: they stay. */
async function reload(): Promise<void> {
  if (!connection.isHost) return;
  const found = new Map<string, Pending>();
  const heard: Operation[] = [];
  reading.add(heard);
  try {
    let cursor: string | null = null;
    do {
      const page: { data: Operation[]; nextCursor: string | null } = await connection.request("operation/list", {
        limit: 200,
        ...(cursor === null ? {} : { cursor }),
      });
      for (const operation of page.data) found.set(operation.operationId, ofOperation(operation));
      cursor = page.nextCursor;
    } while (cursor !== null);
  } finally {
    reading.delete(heard);
  }
  pending.value = new Map([...questions(), ...found]);
  for (const operation of heard) hear(operation);
}

function isOperation(params: unknown): boolean {
  const id = record(params)["operationId"];
  return typeof id === "string" && pending.peek().has(id);
}

/** The operation that a thread waits for is announced within this time, if there is one. */
const QUESTION_MS = 500;
/** A task that is followed for its open questions asks them again within this time. */
const LOOK_MS = 5_000;

/** Threads that are followed for their questions alone. */
const followed = new Set<string>();

/** Follows a thread that waits for something other than an operation: an open question, which only followers receive. */
function followQuestion(threadId: string): void {
  if (followed.has(threadId) || [...pending.peek().values()].some((entry) => entry.threadId === threadId)) return;
  followed.add(threadId);
  hold(threadId);
  void connection.request("thread/resume", { threadId, excludeTurns: true }).catch(() => unfollow(threadId));
}

function unfollow(threadId: string): void {
  if (followed.delete(threadId)) release(threadId);
}

/** Tasks that are looked at for a question when this window connects. No more run at once on most hosts. */
const MOST_LOOKED_AT = 100;

/**
 * Finds questions that were asked before this window was opened, or while it had no connection. A task with such a question is
 * listed as running, so running tasks are followed for a moment: their open questions are sent again to each new follower.
 */
async function followAsking(): Promise<void> {
  const pages = await Promise.all(
    (["running", "waiting"] as const).map((state) => connection.request("task/list", { state, limit: MOST_LOOKED_AT })),
  );
  const busy = pages.flatMap((page) => page.data).filter((task) => task.hasRuntime && task.waitingOperations === 0);
  for (const task of busy) followQuestion(task.id);
  setTimeout(() => {
    const asking = new Set(questions().map(([, entry]) => entry.threadId));
    for (const task of busy) if (!asking.has(task.id)) unfollow(task.id);
  }, LOOK_MS);
}

async function begin(): Promise<void> {
  // Questions of the last connection cannot be answered over this one. The server sends them again.
  for (const [key] of questions()) remove(key);
  for (const threadId of followed) unfollow(threadId);
  await reload();
  if (connection.isHost) await followAsking();
}

export function startInbox(): void {
  connection.onReady(() => void begin().catch(() => undefined));
  connection.onNotice((notice) => {
    if (notice.method === "operation/updated") {
      hear(notice.params.operation);
    } else if (notice.method === "thread/status/changed" && connection.isHost) {
      const { status, threadId } = notice.params;
      if (status.type === "active" && status.activeFlags.length > 0) setTimeout(() => followQuestion(threadId), QUESTION_MS);
      else unfollow(threadId);
    } else if (notice.method === "serverRequest/resolved") {
      remove(`question:${String(notice.params.requestId)}`);
    }
  });
  connection.onQuestion(({ id, method, params }) => {
    // On a host, an operation of the store is decided by `operation/decide`, not by answering its question. A question that an
    // MCP server asks while its tool runs is no operation and has to be answered.
    if (connection.isHost && (method !== "mcpServer/elicitation/request" || isOperation(params))) return;
    const entry = ofQuestion(id, method, params);
    if (entry !== undefined) set(entry);
  });
}

function decisionOf(choice: Choice, text: string): OperationDecision {
  switch (choice) {
    case "approve":
      return { type: "approve" };
    case "approveForSession":
      return { type: "approve", scope: "session" };
    case "replace":
      return { type: "replace", ...(JSON.parse(text) as Partial<Extract<OperationDecision, { type: "replace" }>>) };
    case "retry":
      return { type: "retry" };
    case "reject":
      return { type: "reject", endTurn: false, ...(text === "" ? {} : { message: text }) };
    case "rejectAndStop":
      return { type: "reject", endTurn: true, ...(text === "" ? {} : { message: text }) };
    case "respond":
      return { type: "respond", contentItems: [{ type: "inputText", text }], success: true };
  }
}

const ANSWERS: Partial<Record<Choice, string>> = {
  approve: "accept",
  approveForSession: "acceptForSession",
  reject: "decline",
  rejectAndStop: "cancel",
};

/** Sends a decision. Returns a message for the person when it was not taken. */
export async function decide(entry: Pending, choice: Choice, text = ""): Promise<string | undefined> {
  deciding.value = new Set(deciding.peek()).add(entry.key);
  try {
    if (entry.source.type === "question") {
      const isAnswer = choice === "respond" && (entry.questions !== undefined || entry.form !== undefined);
      connection.answer(entry.source.id, isAnswer ? JSON.parse(text) : { decision: ANSWERS[choice] ?? "decline" });
    } else {
      await connection.request("operation/decide", {
        operationId: entry.key,
        argumentsDigest: entry.digest ?? "",
        decision: decisionOf(choice, text),
      });
    }
    remove(entry.key);
    announce(`${choice === "approve" || choice === "approveForSession" ? "Approved" : "Decided"}: ${entry.tool}`);
    return undefined;
  } catch (error) {
    if (error instanceof RequestFailed) {
      // Somebody else was first, or it changed: what is there now is read again.
      void reload().catch(() => undefined);
      return error.message;
    }
    return error instanceof Error ? error.message : String(error);
  } finally {
    const next = new Set(deciding.peek());
    next.delete(entry.key);
    deciding.value = next;
  }
}
