import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { UsageSum } from "../../protocol";
import { plain } from "../safe/characters";
import { readableError } from "../safe/errors";
import { say, trying } from "../state/announce";
import { loadChanges } from "../state/changes";
import { useChosen } from "../state/chosen";
import { deciding, inbox, type Choice } from "../state/inbox";
import { useKeys } from "../state/keys";
import { placements } from "../state/placements";
import { mayDecide, mayOperate } from "../state/role";
import { go, type TaskViewName } from "../state/route";
import { isShown } from "../state/shown";
import { parentOf, rowOfTask, tasks, touch, type TaskRow } from "../state/tasks";
import { openThread, type Row, type ThreadView } from "../state/thread";
import { spent, sums, tokensOf } from "../state/usage";
import { connection } from "../wire/connection";
import { AskDialog, Dialog, SureDialog } from "./Dialog";
import { count, duration, moment, money, shortId, shortPath } from "./format";
import { decideAndSay } from "./InboxPage";
import { Elapsed, Item, Plan } from "./Item";
import { Menu, type MenuEntry } from "./Menu";
import { PendingCard, startEdit } from "./PendingCard";
import { inputOf, PictureButton, takePictures, Thumbs } from "./Pictures";
import { PromptPage } from "./PromptPage";
import { RecordsPage } from "./RecordsPage";
import { Spark } from "./Spark";
import { State } from "./State";
import { Code, Visible } from "./Text";
import { UsageChart, UsageSpark } from "./UsageChart";
import { Virtual } from "./Virtual";

const VIEWS: [TaskViewName, string, string][] = [["conversation", "Conversation", "c"], ["prompt", "What the model sees", "p"], ["records", "Records", "r"]];

function addressOf(id: string, view: TaskViewName): string {
  return view === "conversation" ? `/task/${id}` : `/task/${id}/${view}`;
}

export function TaskPage({ id, shown }: { id: string; shown: TaskViewName }): JSX.Element {
  const view = openThread.value;
  const views = mayOperate() ? VIEWS : [];
  useKeys({
    u: () => go("/tasks"),
    ...Object.fromEntries(views.map(([name, , key]) => [key, () => go(addressOf(id, name))])),
  });
  if (view?.id !== id) return <section class="page task"><p class="empty">Reading the task …</p></section>;
  if (view.thread.value === undefined && view.problem.value !== undefined) return <Unread view={view} problem={view.problem.value} />;
  return (
    <section class="page task">
      <TaskHead view={view} />
      {views.length > 0 && <Tabs id={id} shown={shown} />}
      {view.problem.value !== undefined && <p class="problem"><Visible text={view.problem.value} /></p>}
      {shown === "conversation" && <Conversation view={view} />}
      {shown === "prompt" && <PromptPage view={view} />}
      {shown === "records" && <RecordsPage id={id} />}
    </section>
  );
}

function Tabs({ id, shown }: { id: string; shown: TaskViewName }): JSX.Element {
  return (
    <nav class="tabs" aria-label="Views of the task">
      {VIEWS.map(([name, label, key]) => (
        <a href={`#${addressOf(id, name)}`} aria-current={shown === name ? "page" : undefined}>{label} <kbd aria-hidden="true">{key}</kbd></a>
      ))}
    </nav>
  );
}

function Conversation({ view }: { view: ThreadView }): JSX.Element {
  const isFollowing = useSignal(true);
  const field = useRef<HTMLTextAreaElement>(null);
  useKeys({
    f: () => (isFollowing.value = true),
    w: () => (view.isRaw.value = !view.isRaw.peek()),
    "/": () => field.current?.focus(),
  });
  const rows = view.rows.value;
  return (
    <>
      {rows.length === 0 ? (
        <p class="empty grow">{view.thread.value === undefined ? "Reading the task …" : "Nothing was said yet."}</p>
      ) : (
        <Virtual<Row>
          rows={rows}
          keyOf={(row) => row.key}
          estimate={60}
          role="log"
          label="What happened in this task"
          class="items"
          isFollowing={isFollowing.value}
          onFollow={(isAtEnd) => (isFollowing.value = isAtEnd)}
          onNearStart={() => void view.loadOlder()}
          draw={(row) => <RowView row={row} view={view} />}
        />
      )}
      {!isFollowing.value && (
        <button type="button" class="to-end" onClick={() => (isFollowing.value = true)}>Follow <kbd>f</kbd></button>
      )}
      <Waiting view={view} />
      <Failure view={view} />
      {view.runningTurn.value !== undefined && view.errors.value.length > 0 && <p class="problem"><Visible text={readableError(view.errors.value.at(-1) ?? "").message} /></p>}
      {mayOperate() && tasks.value.get(view.id)?.isArchived !== true && <Composer view={view} field={field} />}
    </>
  );
}

/** The page of a task that does not exist any more or cannot be read now. */
function Unread({ view, problem }: { view: ThreadView; problem: string }): JSX.Element {
  return (
    <section class="page task">
      <header class="bar"><a class="back" href="#/tasks" aria-label="All tasks">‹</a><h1>Task {shortId(view.id)}</h1></header>
      <div class="all-clear" role="alert">
        <p class="big bad">This task cannot be read</p>
        <p><Visible text={problem} /></p>
        <p class="ways"><a href="#/tasks">All tasks</a> <button type="button" onClick={() => void view.load()}>Try again</button></p>
      </div>
    </section>
  );
}

function RowView({ row, view }: { row: Row; view: ThreadView }): JSX.Element {
  if (row.type === "item") return <Item view={row} threadId={view.id} isRaw={view.isRaw.value} />;
  if (row.type === "plan") return <Plan steps={row.steps.value} />;
  const turn = row.turn.value;
  return (
    <div class={`turn-mark ${turn.status}`}>
      <span>Turn {row.number.value}</span>
      <span class="status">{turn.status === "inProgress" ? "running" : turn.status}</span>
      {turn.durationMs !== null ? <span>{duration(turn.durationMs)}</span> : turn.status === "inProgress" && turn.startedAt !== null && <Elapsed sinceMs={turn.startedAt * 1_000} />}
      {turn.startedAt !== null && <time>{moment(turn.startedAt * 1_000)}</time>}
    </div>
  );
}

/** The reason why the last turn failed, with a button that tries it again. */
function Failure({ view }: { view: ThreadView }): JSX.Element | null {
  const isTrying = useSignal(false);
  const last = view.rows.value.findLast((row) => row.type === "turn");
  const turn = last?.type === "turn" ? last.turn.value : undefined;
  if (turn === undefined || turn.status !== "failed" || view.runningTurn.value !== undefined) return null;
  const { message, raw } = readableError(turn.error?.message ?? "It is not known why.");
  const details = turn.error?.additionalDetails ?? raw;
  const input = view.inputOf(turn.id);
  const again = async () => {
    isTrying.value = true;
    await trying(() => connection.request("turn/start", { threadId: view.id, input: input ?? [] }));
    isTrying.value = false;
  };
  return (
    <div class="failure" role="alert">
      <p><b>The turn failed.</b> <Visible text={message} /></p>
      {details !== undefined && details !== message && (
        <details><summary>All that is known</summary><Code text={details} /></details>
      )}
      {mayOperate() && input !== undefined && (
        <button type="button" disabled={isTrying.value} onClick={() => void again()}>Try again</button>
      )}
    </div>
  );
}

function TaskHead({ view }: { view: ThreadView }): JSX.Element {
  const task = tasks.value.get(view.id);
  const thread = view.thread.value;
  const parent = thread === undefined ? undefined : parentOf(thread);
  const title = plain(thread?.name ?? task?.title ?? thread?.preview ?? "").slice(0, 300) || `Task ${shortId(view.id)}`;
  const place = task?.placementId === undefined ? undefined : placements.value.get(task.placementId);
  return (
    <header class="bar task-head">
      <div class="task-line">
        <a class="back" href="#/tasks" aria-label="All tasks">‹</a>
        <h1 title={title}>{title}</h1>
        {task !== undefined && <State state={task.state} />}
        {task?.isArchived === true && <span class="label">archived</span>}
        {parent !== undefined && <a class="from-parent" href={`#/task/${parent}`}>an agent of {shortId(parent)}</a>}
        {mayOperate() && <Actions view={view} />}
      </div>
      <dl class="meta">
        {view.model.value !== "" && <div><dt>model</dt><dd>{plain(view.model.value)}</dd></div>}
        {thread !== undefined && thread.cwd !== "" && <div><dt>folder</dt><dd title={plain(thread.cwd)}>{plain(shortPath(thread.cwd))}</dd></div>}
        {place !== undefined && <div><dt>place</dt><dd>{plain(place.name)}</dd></div>}
        {typeof view.settings.value["approvalPolicy"] === "string" && <div><dt>asks</dt><dd>{view.settings.value["approvalPolicy"]}</dd></div>}
        <div><dt>id</dt><dd title={view.id}>{shortId(view.id)}</dd></div>
        {Object.entries(task?.labels ?? {}).map(([key, value]) => <div><dt>{plain(key)}</dt><dd>{plain(value)}</dd></div>)}
        <Used view={view} />
      </dl>
    </header>
  );
}

function Used({ view }: { view: ThreadView }): JSX.Element | null {
  const isOpen = useSignal(false);
  const minutes = useMinutes(view);
  const usage = view.usage.value;
  const cost = minutes.reduce((sum, one) => sum + one.costMicros, 0);
  if (minutes.length > 0) {
    const words = `${count(minutes.reduce((sum, one) => sum + tokensOf(one), 0))} tokens${cost > 0 ? ` · ${money(cost)}` : ""}`;
    return (
      <div class="used">
        <dt>used</dt>
        <dd>
          <button type="button" class="quiet" aria-label={`Used: ${words}. Show it over time`} onClick={() => (isOpen.value = true)}>
            {words} <UsageSpark sums={minutes} unit="minute" />
          </button>
        </dd>
        {isOpen.value && (
          <Dialog title="Used over time" class="wide-dialog" onClose={() => (isOpen.value = false)}>
            <p class="reason">{words}, with its agents.</p>
            <UsageChart sums={minutes} unit="minute" />
            <form method="dialog" class="dialog-end"><button data-first>Close</button></form>
          </Dialog>
        )}
      </div>
    );
  }
  if (usage === undefined) return null;
  return (
    <div>
      <dt>tokens</dt>
      <dd title={`${usage.total.inputTokens} in, ${usage.total.outputTokens} out`}>
        {count(usage.total.totalTokens)} <Spark values={view.usageOverTime.value} />
      </dd>
    </div>
  );
}

/** The usage of the task, minute by minute; read again whenever its sum grows. */
function useMinutes(view: ThreadView): readonly UsageSum[] {
  const found = useSignal<readonly UsageSum[]>([]);
  const tokens = spent.value.get(view.id)?.tokens ?? 0;
  useEffect(() => {
    if (tokens > 0) void sums("minute", { threadId: view.id }).then((all) => (found.value = all)).catch(() => undefined);
  }, [view.id, tokens]);
  return found.value;
}

/** On a host, a task at rest has nothing to resume: its next turn brings a process by itself. */
function isResumable(task: TaskRow): boolean {
  const isAtRest = task.state === "idle" || task.problem !== undefined;
  return !task.hasRuntime && !(connection.isHost && isAtRest);
}

function Actions({ view }: { view: ThreadView }): JSX.Element {
  const id = view.id;
  const turn = view.runningTurn.value;
  const task = tasks.value.get(id);
  const asked = useSignal<"rename" | "archive" | undefined>(undefined);
  const close = () => (asked.value = undefined);
  const put = (row: ReturnType<typeof rowOfTask>) => (tasks.value = new Map(tasks.peek()).set(id, row));
  const rename = (name: string) => void trying(() => connection.request("thread/name/set", { threadId: id, name }));
  const archive = async () => {
    if (await trying(() => connection.request("thread/archive", { threadId: id }))) go("/tasks");
  };
  const unarchive = () =>
    trying(async () => {
      await connection.request("thread/unarchive", { threadId: id });
      touch(id);
      await view.load();
    });
  const fork = () =>
    trying(async () => go(`/task/${(await connection.request("thread/fork", { threadId: id })).thread.id}`));
  const resume = () =>
    trying(async () => {
      if (connection.isHost) put(rowOfTask((await connection.request("task/resume", { threadId: id })).task));
      else await view.load();
    });
  const suspend = () => trying(async () => put(rowOfTask((await connection.request("task/suspend", { threadId: id })).task)));
  if (task?.isArchived === true) {
    return <div class="actions"><button type="button" onClick={() => void unarchive()}>Unarchive</button></div>;
  }
  const entries: MenuEntry[] = [
    { name: "Rename …", act: () => (asked.value = "rename") },
    { name: "Fork", act: () => void fork() },
    { name: "Compact", act: () => void trying(() => connection.request("thread/compact/start", { threadId: id })), isDisabled: turn !== undefined },
    { name: view.isRaw.value ? "Hide the JSON of items" : "Show the JSON of items", act: () => (view.isRaw.value = !view.isRaw.peek()) },
    { name: "Archive …", act: () => (asked.value = "archive"), isDanger: true },
  ];
  return (
    <div class="actions">
      {turn !== undefined && (
        <button type="button" class="danger" onClick={() => void trying(() => connection.request("turn/interrupt", { threadId: id, turnId: turn }))}>
          Interrupt
        </button>
      )}
      {task !== undefined && isResumable(task) && <button type="button" onClick={() => void resume()}>Resume</button>}
      {connection.isHost && task?.hasRuntime === true && <button type="button" onClick={() => void suspend()}>Suspend</button>}
      <Menu name="More" entries={entries} />
      {asked.value === "rename" && (
        <AskDialog title="Rename the task" label="Name" value={view.thread.value?.name ?? ""} action="Rename" onClose={close} onDone={rename} />
      )}
      {asked.value === "archive" && (
        <SureDialog title="Archive the task?" action="Archive" onClose={close} onDone={() => void archive()}>
          Its process ends, and it leaves the list. It can be read and taken back under “archived”.
        </SureDialog>
      )}
    </div>
  );
}

/** The decisions that this task, or this agent, waits for, right where they happen. */
function Waiting({ view }: { view: ThreadView }): JSX.Element | null {
  const whole = useSignal<ReadonlySet<string>>(new Set());
  const entries = inbox.value.filter((one) => one.taskId === view.id || one.threadId === view.id);
  const { entry, at, isFresh, choose: show } = useChosen(entries);
  useEffect(() => {
    if (entry?.kind === "fileChange") void loadChanges(entry).catch((error: Error) => say(error.message, true));
  }, [entry?.key]);
  const shown = entry !== undefined && isShown(entry, whole.value);
  const choose = (choice: Choice, text?: string) => {
    if (entry === undefined || isFresh || !mayDecide() || !entry.choices.includes(choice) || deciding.peek().has(entry.key)) return;
    const isYes = choice === "approve" || choice === "approveForSession" || choice === "replace" || choice === "retry";
    if (shown || !isYes) void decideAndSay(entry, choice, text);
  };
  useKeys({
    a: () => choose(entry?.isUnknown === true ? "retry" : "approve"),
    s: () => choose("approveForSession"),
    d: () => choose("reject"),
    e: startEdit,
    j: () => show(at + 1),
    k: () => show(at - 1),
  });
  if (entry === undefined) return null;
  return (
    <div class="waiting-here">
      {entries.length > 1 && (
        <p class="one-of">
          {at + 1} of {entries.length} that wait here
          <button type="button" class="quiet" disabled={at === 0} onClick={() => show(at - 1)}>Previous <kbd>k</kbd></button>
          <button type="button" class="quiet" disabled={at === entries.length - 1} onClick={() => show(at + 1)}>Next <kbd>j</kbd></button>
        </p>
      )}
      <PendingCard
        key={entry.key}
        entry={entry}
        isShown={shown}
        isWhole={whole.value.has(entry.key)}
        isFresh={isFresh}
        onWhole={() => (whole.value = new Set(whole.peek()).add(entry.key))}
        onChoice={choose}
      />
    </div>
  );
}

function Composer({ view, field }: { view: ThreadView; field: { current: HTMLTextAreaElement | null } }): JSX.Element {
  const text = useSignal("");
  const pictures = useSignal<string[]>([]);
  const isSending = useSignal(false);
  /** Stays the same when one message is sent again, so that the server takes it once. */
  const inputId = useRef<string | undefined>(undefined);
  const turn = view.runningTurn.value;
  const send = async (event?: Event) => {
    event?.preventDefault();
    const words = text.peek().trim();
    if ((words === "" && pictures.peek().length === 0) || isSending.peek()) return;
    inputId.current ??= crypto.randomUUID?.() ?? String(Math.random()).slice(2);
    const input = inputOf(words, pictures.peek());
    isSending.value = true;
    const id = inputId.current;
    const went = await trying(() =>
      turn !== undefined
        ? connection.request("turn/steer", { threadId: view.id, input, expectedTurnId: turn, inputId: id })
        : connection.request("turn/start", { threadId: view.id, input, inputId: id }),
    );
    isSending.value = false;
    if (went) {
      text.value = "";
      pictures.value = [];
      inputId.current = undefined;
    }
  };
  return (
    <form class="composer" onSubmit={(event) => void send(event)}>
      <Thumbs pictures={pictures} />
      <textarea
        ref={field}
        rows={Math.min(8, text.value.split("\n").length)}
        aria-label={turn === undefined ? "Start a turn" : "Add to the running turn"}
        placeholder={turn === undefined ? "Say what to do next" : "Steer the running turn"}
        value={text.value}
        onPaste={(event) => takePictures(event, event.clipboardData?.files, pictures)}
        onInput={(event) => { text.value = event.currentTarget.value; inputId.current = undefined; }}
        onKeyDown={(event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); void send(); } }}
      />
      <PictureButton pictures={pictures} />
      <button type="submit" class="primary" disabled={(text.value.trim() === "" && pictures.value.length === 0) || isSending.value}>
        {turn === undefined ? "Send" : "Steer"}
      </button>
    </form>
  );
}
