// One thread as it happens. Deltas are collected and applied once per frame, so that thousands of them a second cost as
// much as one; each item has a signal of its own, so that only what grew is drawn again.

import { batch, signal, type Signal } from "@preact/signals";

import type { FileUpdateChange, Thread, ThreadItem, ThreadTokenUsage, Turn, TurnPlanStep } from "../../protocol";
import { connection, type Notice } from "../wire/connection";

export interface ItemView {
  type: "item";
  key: string;
  turnId: string;
  item: Signal<ThreadItem>;
  isOpen: Signal<boolean>;
}

export interface TurnMark {
  type: "turn";
  key: string;
  turn: Signal<Turn>;
  number: number;
}

export interface PlanView {
  type: "plan";
  key: string;
  steps: Signal<TurnPlanStep[]>;
}

export type Row = ItemView | TurnMark | PlanView;

/** Of one item's live output no more than this is kept. */
const MAX_LIVE_OUTPUT = 2_000_000;

export class ThreadView {
  readonly rows = signal<readonly Row[]>([]);
  readonly thread = signal<Thread | undefined>(undefined);
  readonly model = signal<string>("");
  readonly settings = signal<Record<string, unknown>>({});
  readonly problem = signal<string | undefined>(undefined);
  readonly runningTurn = signal<string | undefined>(undefined);
  readonly usage = signal<ThreadTokenUsage | undefined>(undefined);
  /** Tokens of each model response since this page was opened. */
  readonly usageOverTime = signal<readonly number[]>([]);
  readonly errors = signal<readonly string[]>([]);

  readonly #items = new Map<string, ItemView>();
  readonly #turns = new Map<string, TurnMark>();
  readonly #plans = new Map<string, PlanView>();
  #deltas: Notice[] = [];
  #frame: number | undefined;
  #isReplaying = true;
  #early: Notice[] = [];

  constructor(readonly id: string) {}

  /** Reads the thread and follows it. Called again after each reconnect: what was missed is in the answer. */
  async load(): Promise<void> {
    this.#isReplaying = true;
    this.#early = [];
    try {
      try {
        const opened = await connection.request("thread/resume", { threadId: this.id });
        this.model.value = opened.model;
        this.settings.value = { approvalPolicy: opened.approvalPolicy, sandbox: opened.sandbox, cwd: opened.cwd };
        this.#replace(opened.thread);
        await this.#addOpenItems();
      } catch {
        // An archived task, or one that no runtime has opened: it can be read and not followed.
        const read = await connection.request("thread/read", { threadId: this.id, includeTurns: true });
        this.#replace(read.thread);
      }
      this.problem.value = undefined;
    } catch (error) {
      this.problem.value = error instanceof Error ? error.message : String(error);
    }
    this.#isReplaying = false;
    const early = this.#early;
    this.#early = [];
    for (const notice of early) this.hear(notice);
  }

  leave(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    // The last one to leave a thread of an app-server unloads it, and ends its turn. A host keeps it.
    if (connection.state.peek().type === "ready" && connection.isHost) {
      void connection.request("thread/unsubscribe", { threadId: this.id }).catch(() => undefined);
    }
  }

  hear(notice: Notice): void {
    if (!("threadId" in notice.params) || notice.params.threadId !== this.id) return;
    if (this.#isReplaying) {
      this.#early.push(notice);
      return;
    }
    if (isDelta(notice.method)) {
      this.#deltas.push(notice);
      this.#frame ??= requestAnimationFrame(() => this.#flush());
      return;
    }
    this.#flush();
    batch(() => this.#apply(notice));
  }

  /** The changes of a patch, as its item shows them. */
  changesOf(itemId: string): FileUpdateChange[] | undefined {
    const item = this.#items.get(itemId)?.item.value;
    return item?.type === "fileChange" ? item.changes : undefined;
  }

  #replace(thread: Thread): void {
    const open = new Set([...this.#items.values()].filter((view) => view.isOpen.peek()).map((view) => view.key));
    this.#items.clear();
    this.#turns.clear();
    const plans = new Map(this.#plans);
    const rows: Row[] = [];
    let running: string | undefined;
    for (const [index, turn] of thread.turns.entries()) {
      const mark: TurnMark = { type: "turn", key: `turn:${turn.id}`, turn: signal({ ...turn, items: [] }), number: index + 1 };
      this.#turns.set(turn.id, mark);
      rows.push(mark);
      for (const item of turn.items) {
        const view = this.#view(turn.id, item);
        if (open.has(view.key)) view.isOpen.value = true;
        rows.push(view);
      }
      const plan = plans.get(turn.id);
      if (plan !== undefined) rows.push(plan);
      if (turn.status === "inProgress") running = turn.id;
    }
    batch(() => {
      this.thread.value = { ...thread, turns: [] };
      this.rows.value = rows;
      this.runningTurn.value = running;
    });
  }

  /** Items of the running turn that are not over: a host's record has none of them, its runtime has. */
  async #addOpenItems(): Promise<void> {
    const turn = this.runningTurn.peek();
    if (turn === undefined || this.thread.peek()?.status.type === "notLoaded") return;
    const page = await connection.request("thread/items/list", { threadId: this.id, limit: 50 }).catch(() => undefined);
    const open = (page?.data ?? []).filter(({ turnId, item }) => turnId === turn && !this.#items.has(item.id));
    this.rows.value = [...this.rows.peek(), ...open.toReversed().map(({ item }) => this.#view(turn, item))];
  }

  #view(turnId: string, item: ThreadItem): ItemView {
    const view: ItemView = { type: "item", key: `${turnId}:${item.id}`, turnId, item: signal(item), isOpen: signal(false) };
    this.#items.set(item.id, view);
    return view;
  }

  #apply(notice: Notice): void {
    switch (notice.method) {
      case "turn/started":
        this.#turnSeen(notice.params.turn);
        this.runningTurn.value = notice.params.turn.id;
        break;
      case "turn/completed":
        this.#turnSeen(notice.params.turn);
        this.runningTurn.value = undefined;
        break;
      case "item/started":
      case "item/completed":
        this.#itemSeen(notice.params.turnId, notice.params.item, notice.method === "item/completed");
        break;
      case "turn/plan/updated":
        this.#planSeen(notice.params.turnId, notice.params.plan);
        break;
      case "thread/tokenUsage/updated":
        this.usage.value = notice.params.tokenUsage;
        this.usageOverTime.value = [...this.usageOverTime.peek(), notice.params.tokenUsage.last.totalTokens].slice(-200);
        break;
      case "thread/status/changed":
        if (this.thread.peek() !== undefined) {
          this.thread.value = { ...(this.thread.peek() as Thread), status: notice.params.status };
        }
        break;
      case "thread/name/updated":
        if (this.thread.peek() !== undefined) {
          this.thread.value = { ...(this.thread.peek() as Thread), name: notice.params.threadName ?? null };
        }
        break;
      case "error":
        this.errors.value = [...this.errors.peek(), notice.params.error.message].slice(-5);
        break;
      default:
    }
  }

  #turnSeen(turn: Turn): void {
    const known = this.#turns.get(turn.id);
    if (known !== undefined) {
      known.turn.value = { ...turn, items: [] };
      return;
    }
    const mark: TurnMark = {
      type: "turn",
      key: `turn:${turn.id}`,
      turn: signal({ ...turn, items: [] }),
      number: this.#turns.size + 1,
    };
    this.#turns.set(turn.id, mark);
    this.rows.value = [...this.rows.peek(), mark];
  }

  #itemSeen(turnId: string, item: ThreadItem, isOver: boolean): void {
    const known = this.#items.get(item.id);
    if (known === undefined) {
      this.rows.value = [...this.rows.peek(), this.#view(turnId, item)];
      return;
    }
    // A runtime that takes a turn up again begins its open items again; what was shown of them stays until they end.
    if (isOver || !isGrown(known.item.peek())) known.item.value = item;
  }

  #planSeen(turnId: string, steps: TurnPlanStep[]): void {
    const known = this.#plans.get(turnId);
    if (known !== undefined && this.rows.peek().includes(known)) {
      known.steps.value = steps;
      return;
    }
    const plan: PlanView = { type: "plan", key: `plan:${turnId}`, steps: signal(steps) };
    this.#plans.set(turnId, plan);
    this.rows.value = [...this.rows.peek(), plan];
  }

  #flush(): void {
    this.#frame = undefined;
    const deltas = this.#deltas;
    if (deltas.length === 0) return;
    this.#deltas = [];
    const grown = new Map<ItemView, ThreadItem>();
    for (const delta of deltas) {
      const params = delta.params as { itemId: string; delta: string; summaryIndex?: number; contentIndex?: number };
      const view = this.#items.get(params.itemId);
      if (view === undefined) continue;
      grown.set(view, withDelta(grown.get(view) ?? view.item.peek(), delta.method, params));
    }
    batch(() => {
      for (const [view, item] of grown) view.item.value = item;
    });
  }
}

function isDelta(method: string): boolean {
  return method.endsWith("elta");
}

function isGrown(item: ThreadItem): boolean {
  if (item.type === "agentMessage" || item.type === "plan") return item.text !== "";
  return item.type === "commandExecution" && item.aggregatedOutput !== null;
}

function withDelta(
  item: ThreadItem,
  method: string,
  params: { delta: string; summaryIndex?: number; contentIndex?: number },
): ThreadItem {
  if (item.type === "agentMessage" || item.type === "plan") return { ...item, text: item.text + params.delta };
  if (item.type === "commandExecution") {
    const output = (item.aggregatedOutput ?? "") + params.delta;
    return { ...item, aggregatedOutput: output.length > MAX_LIVE_OUTPUT ? output.slice(-MAX_LIVE_OUTPUT / 2) : output };
  }
  if (item.type === "reasoning") {
    const isSummary = method === "item/reasoning/summaryTextDelta";
    const parts = [...(isSummary ? item.summary : item.content)];
    const index = Math.min((isSummary ? params.summaryIndex : params.contentIndex) ?? 0, 1_000);
    while (parts.length <= index) parts.push("");
    parts[index] = (parts[index] ?? "") + params.delta;
    return isSummary ? { ...item, summary: parts } : { ...item, content: parts };
  }
  return item;
}

/** The thread on the screen, if there is one. */
export const openThread = signal<ThreadView | undefined>(undefined);

export function startThreads(): void {
  connection.onReady(() => void openThread.peek()?.load());
  connection.onNotice((notice) => openThread.peek()?.hear(notice));
}

export function follow(id: string | undefined): void {
  const current = openThread.peek();
  if (current?.id === id) return;
  current?.leave();
  if (id === undefined) {
    openThread.value = undefined;
    return;
  }
  const view = new ThreadView(id);
  openThread.value = view;
  if (connection.state.peek().type === "ready") void view.load();
}
