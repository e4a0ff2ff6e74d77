// One thread as it happens. Deltas are collected and applied once per frame, so that thousands of them a second cost as
// much as one; each item has a signal of its own, so that only what grew is drawn again.

import { batch, signal, type Signal } from "@preact/signals";

import type { Thread, ThreadItem, ThreadItemEntry, ThreadTokenUsage, Turn, TurnError, TurnPlanStep, UserInput } from "../../protocol";
import { connection, type Notice } from "../wire/connection";
import { hold, release } from "./followers";
import { forgetPictures } from "./pictures";
import { parentOf } from "./tasks";

export interface ItemView {
  type: "item";
  key: string;
  turnId: string;
  item: Signal<ThreadItem>;
  isOpen: Signal<boolean>;
  /** The item is complete: later deltas for it are ignored. */
  isOver: boolean;
  /** Unix milliseconds of its beginning, when this window saw it begin. */
  sinceMs: number | undefined;
}

export interface TurnMark {
  type: "turn";
  key: string;
  turn: Signal<Turn>;
  /** Counted from the beginning of the thread, so unset until that was read. */
  number: Signal<number | undefined>;
}

export interface PlanView {
  type: "plan";
  key: string;
  steps: Signal<TurnPlanStep[]>;
}

export type Row = ItemView | TurnMark | PlanView;

/** The largest page that a server gives. */
const PAGE = 100;
/** After a lost connection, items are read back to a known one, but no more than this. */
const MOST_AGAIN = 5_000;

/** Of one item's live output no more than this is kept. */
const MAX_LIVE_OUTPUT = 2_000_000;

/** Message and details of an error. The message of a retry is only a count; its reason is in the details. */
function sentenceOf({ message, additionalDetails }: TurnError): string {
  return additionalDetails ? `${message} (${additionalDetails})` : message;
}

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
  /** Whether the JSON of each item is shown below it. */
  readonly isRaw = signal(false);
  /** The thread begins before the first row. */
  readonly hasOlder = signal(false);

  readonly #items = new Map<string, ItemView>();
  readonly #turns = new Map<string, TurnMark>();
  readonly #plans = new Map<string, PlanView>();
  #deltas: Notice[] = [];
  #frame: number | undefined;
  #isReplaying = true;
  #early: Notice[] = [];
  #olderItems: string | null = null;
  #olderTurns: string | null = null;
  #isReadingOlder = false;
  /** Increases with each reading of the end. A page that was asked for under an earlier number is dropped. */
  #reading = 0;

  constructor(readonly id: string) {
    hold(id);
  }

  /** Reads the thread and follows it. Called again after each reconnect: what was missed is in the answer. */
  async load(): Promise<void> {
    const mine = ++this.#reading;
    this.#isReplaying = true;
    this.#early = [];
    let problem: string | undefined;
    try {
      try {
        const opened = await connection.request("thread/resume", { threadId: this.id, excludeTurns: true, includeOpenItems: true });
        this.model.value = opened.model;
        this.settings.value = { approvalPolicy: opened.approvalPolicy, sandbox: opened.sandbox, cwd: opened.cwd };
        await this.#readEnd(opened.thread, mine);
      } catch {
        // An archived task, or one that no runtime has opened: it can be read and not followed.
        const read = await connection.request("thread/read", { threadId: this.id, includeTurns: false });
        await this.#readEnd(read.thread, mine);
      }
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error);
    }
    // A later reading began meanwhile, after a reconnect: its result counts.
    if (mine !== this.#reading) return;
    this.problem.value = problem;
    this.#isReplaying = false;
    const early = this.#early;
    this.#early = [];
    for (const notice of early) this.hear(notice);
  }

  leave(): void {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    release(this.id);
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

  /** The task that it belongs to: itself, or whose agent it is. */
  rootId(): string {
    const thread = this.thread.value;
    return (thread === undefined ? undefined : parentOf(thread)) ?? this.id;
  }

  /** The input that began a turn, as far as it was read. */
  inputOf(turnId: string): UserInput[] | undefined {
    for (const { item, turnId: of } of this.#items.values()) {
      const first = item.peek();
      if (of === turnId && first.type === "userMessage") return first.content;
    }
    return undefined;
  }

  /**
   * Reads the last items, back to one that is known. What was read before it stays, so that whoever reads there keeps their
   * place: records do not change once an item is over.
   */
  async #readEnd(thread: Thread, mine: number): Promise<void> {
    const threadId = this.id;
    const [turns, items] = await Promise.all([
      connection.request("thread/turns/list", { threadId, limit: PAGE, itemsView: "notLoaded" }),
      connection.request("thread/items/list", { threadId, limit: PAGE }),
    ]);
    const entries = items.data;
    let older = items.nextCursor;
    while (older !== null && this.#items.size > 0 && this.#rowsBefore(entries) === undefined && entries.length < MOST_AGAIN) {
      const page = await connection.request("thread/items/list", { threadId, limit: PAGE, cursor: older });
      entries.push(...page.data);
      older = page.nextCursor;
    }
    if (mine !== this.#reading) return;
    for (const turn of turns.data) this.#turnRead(turn);
    this.#olderTurns = turns.nextCursor;
    await this.#readTurnsOf(entries);
    if (mine !== this.#reading) return;
    const before = older === null ? undefined : this.#rowsBefore(entries);
    if (before === undefined) this.#olderItems = older;
    const kept = before ?? [];
    const known = new Map(this.#items);
    this.#items.clear();
    for (const row of kept) if (row.type === "item") this.#items.set(row.item.peek().id, row);
    const rows = this.#rowsOf(entries, kept, known);
    // Turns that nothing happened in yet.
    const newest = entries[0]?.turnId;
    const behind = turns.data.findIndex((turn) => turn.id === newest);
    rows.push(...turns.data.slice(0, behind < 0 ? turns.data.length : behind).toReversed().map((turn) => this.#mark(turn.id)));
    const running = turns.data.find((turn) => turn.status === "inProgress");
    this.#isReadingOlder = false;
    batch(() => {
      this.thread.value = { ...thread, turns: [] };
      this.rows.value = [...kept, ...rows];
      this.runningTurn.value = running?.id;
      this.#countTurns();
    });
  }

  /** The rows before the oldest of these items, if it is known and nothing before it can have changed since. */
  #rowsBefore(entries: readonly ThreadItemEntry[]): readonly Row[] | undefined {
    const oldest = this.#items.get(entries.at(-1)?.item.id ?? "");
    const at = oldest === undefined ? -1 : this.rows.peek().indexOf(oldest);
    const before = this.rows.peek().slice(0, Math.max(0, at));
    return at >= 0 && before.every((row) => row.type !== "item" || row.isOver) ? before : undefined;
  }

  /** Reads one more page before the first row. */
  async loadOlder(): Promise<void> {
    const [mine, cursor] = [this.#reading, this.#olderItems];
    if (cursor === null || this.#isReadingOlder) return;
    this.#isReadingOlder = true;
    try {
      const page = await connection.request("thread/items/list", { threadId: this.id, limit: PAGE, cursor });
      if (mine !== this.#reading) return;
      await this.#readTurnsOf(page.data);
      if (mine !== this.#reading) return;
      const known = this.rows.peek();
      const rows = this.#rowsOf(page.data, known.filter((row) => row.type === "plan"));
      // The page continues the turn of the first row, so the mark of that turn moves to its real beginning.
      const first = known[0];
      const isSplit = first?.type === "turn" && first.key === `turn:${page.data[0]?.turnId}`;
      this.#olderItems = page.nextCursor;
      batch(() => {
        this.rows.value = [...rows, ...(isSplit ? known.slice(1) : known)];
        this.#countTurns();
      });
    } catch {
      // Asked for again by the next scroll.
    } finally {
      if (mine === this.#reading) this.#isReadingOlder = false;
    }
  }

  /** Reads turns back to the first that these items belong to. */
  async #readTurnsOf(entries: readonly ThreadItemEntry[]): Promise<void> {
    for (const { turnId } of entries) {
      while (!this.#turns.has(turnId) && this.#olderTurns !== null) {
        const cursor = this.#olderTurns;
        const page = await connection.request("thread/turns/list", { threadId: this.id, limit: PAGE, itemsView: "notLoaded", cursor });
        for (const turn of page.data) this.#learn(turn);
        this.#olderTurns = page.nextCursor;
      }
    }
  }

  /** Items come with the newest first, rows have the oldest first. Marks and plans that are shown already are left out. */
  #rowsOf(entries: readonly ThreadItemEntry[], shown: readonly Row[], known?: ReadonlyMap<string, ItemView>): Row[] {
    const isShown = new Set(shown);
    const rows: Row[] = [];
    const push = (row: Row | undefined) => {
      if (row !== undefined && !isShown.has(row)) rows.push(row);
    };
    let turn: string | undefined;
    for (const { turnId, item } of entries.toReversed()) {
      const isFirst = turnId !== turn;
      turn = turnId;
      if (isFirst) push(this.#mark(turnId));
      push(this.#readAgain(known?.get(item.id), item) ?? this.#view(turnId, item, isOver(item)));
      // The plan of a turn is behind what was asked for.
      if (isFirst) push(this.#plans.get(turnId));
    }
    return rows;
  }

  /** An item that was on the screen before stays the same row, open or folded as it was. */
  #readAgain(view: ItemView | undefined, item: ThreadItem): ItemView | undefined {
    if (view === undefined) return undefined;
    view.isOver = isOver(item);
    view.item.value = item;
    this.#items.set(item.id, view);
    return view;
  }

  #learn(turn: Turn): void {
    if (!this.#turns.has(turn.id)) this.#turns.set(turn.id, this.#newMark({ ...turn, items: [] }));
    if (turn.plan != null && !this.#plans.has(turn.id)) this.#plans.set(turn.id, planView(turn.id, turn.plan));
  }

  /** Replaces what is known of a turn by what the server has now. */
  #turnRead(turn: Turn): void {
    this.#learn(turn);
    this.#mark(turn.id).turn.value = { ...turn, items: [] };
    const plan = this.#plans.get(turn.id);
    if (plan !== undefined && turn.plan != null) plan.steps.value = turn.plan;
  }

  #newMark(turn: Turn): TurnMark {
    return { type: "turn", key: `turn:${turn.id}`, turn: signal(turn), number: signal(undefined) };
  }

  #mark(turnId: string): TurnMark {
    const known = this.#turns.get(turnId);
    if (known !== undefined) return known;
    const mark = this.#newMark({ id: turnId, items: [], status: "completed", error: null, startedAt: null, completedAt: null, durationMs: null });
    this.#turns.set(turnId, mark);
    return mark;
  }

  #countTurns(): void {
    this.hasOlder.value = this.#olderItems !== null;
    if (this.#olderItems !== null) return;
    let number = 0;
    for (const row of this.rows.peek()) if (row.type === "turn") row.number.value = ++number;
  }

  #view(turnId: string, item: ThreadItem, isOver: boolean): ItemView {
    const view: ItemView = { type: "item", key: `${turnId}:${item.id}`, turnId, item: signal(item), isOpen: signal(false), isOver, sinceMs: undefined };
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
        if (notice.method === "item/started") this.#begun(notice.params.item.id, notice.params.startedAtMs);
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
        this.errors.value = [...this.errors.peek(), sentenceOf(notice.params.error)].slice(-5);
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
    this.#learn(turn);
    this.rows.value = [...this.rows.peek(), this.#mark(turn.id)];
    this.#countTurns();
  }

  #itemSeen(turnId: string, item: ThreadItem, isOver: boolean): void {
    const known = this.#items.get(item.id);
    if (known === undefined) {
      this.rows.value = [...this.rows.peek(), this.#view(turnId, item, isOver)];
      return;
    }
    const wasOver = known.isOver;
    known.isOver ||= isOver;
    // A runtime that takes a turn up again begins its open items again; what was shown of them stays until they end. One
    // that was opened in the middle of an item is told what the item holds so far.
    if (isOver || (!wasOver && grown(item) >= grown(known.item.peek()))) known.item.value = item;
  }

  #begun(itemId: string, atMs: number): void {
    const view = this.#items.get(itemId);
    if (view !== undefined && atMs > 0) view.sinceMs ??= atMs;
  }

  #planSeen(turnId: string, steps: TurnPlanStep[]): void {
    const known = this.#plans.get(turnId);
    if (known !== undefined && this.rows.peek().includes(known)) {
      known.steps.value = steps;
      return;
    }
    const plan = planView(turnId, steps);
    this.#plans.set(turnId, plan);
    this.rows.value = [...this.rows.peek(), plan];
  }

  #flush(): void {
    this.#frame = undefined;
    const deltas = this.#deltas;
    if (deltas.length === 0) return;
    this.#deltas = [];
    const longer = new Map<ItemView, ThreadItem>();
    for (const delta of deltas) {
      const params = delta.params as { itemId: string; delta: string; summaryIndex?: number; contentIndex?: number };
      // Complete items were read whole. An unknown item cannot be drawn before its `item/started`.
      const view = this.#items.get(params.itemId) ?? this.#unannounced(delta);
      if (view === undefined || view.isOver) continue;
      longer.set(view, withDelta(longer.get(view) ?? view.item.peek(), delta.method, params));
    }
    batch(() => {
      for (const [view, item] of longer) view.item.value = item;
    });
  }

  /** A message whose beginning was missed, on a server without `includeOpenItems`: its rest is shown. */
  #unannounced({ method, params }: Notice): ItemView | undefined {
    if (method !== "item/agentMessage/delta") return undefined;
    const view = this.#view(params.turnId, { type: "agentMessage", id: params.itemId, text: "… ", phase: null, memoryCitation: null }, false);
    this.rows.value = [...this.rows.peek(), view];
    return view;
  }
}

function planView(turnId: string, steps: TurnPlanStep[]): PlanView {
  return { type: "plan", key: `plan:${turnId}`, steps: signal(steps) };
}

/** Whether a stored item is complete. Only items with a status are stored before that. */
function isOver(item: ThreadItem): boolean {
  return !("status" in item) || item.status !== "inProgress";
}

function isDelta(method: string): boolean {
  return method.endsWith("elta");
}

/** The length of the text that an item grows by. */
function grown(item: ThreadItem): number {
  if (item.type === "agentMessage" || item.type === "plan") return item.text.length;
  if (item.type === "reasoning") return [...item.summary, ...item.content].reduce((sum, part) => sum + part.length, 0);
  return item.type === "commandExecution" ? (item.aggregatedOutput?.length ?? 0) : 0;
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
  forgetPictures();
  if (id === undefined) {
    openThread.value = undefined;
    return;
  }
  const view = new ThreadView(id);
  openThread.value = view;
  if (connection.state.peek().type === "ready") void view.load();
}
