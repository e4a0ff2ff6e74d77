import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { plain } from "../safe/characters";
import { say, trying } from "../state/announce";
import { loadChanges } from "../state/changes";
import { deciding, inbox, type Choice } from "../state/inbox";
import { useKeys } from "../state/keys";
import { go } from "../state/route";
import { rowOfTask, tasks } from "../state/tasks";
import { openThread, type Row, type ThreadView } from "../state/thread";
import { connection } from "../wire/connection";
import { count, duration, moment, shortId, shortPath } from "./format";
import { decideAndSay, isShown } from "./InboxPage";
import { Item, Plan } from "./Item";
import { PendingCard } from "./PendingCard";
import { Spark } from "./Spark";
import { State } from "./State";
import { Virtual } from "./Virtual";

export function TaskPage({ id }: { id: string }): JSX.Element {
  const view = openThread.value;
  const isFollowing = useSignal(true);
  const field = useRef<HTMLTextAreaElement>(null);
  useKeys({
    f: () => (isFollowing.value = true),
    u: () => go("/tasks"),
    "/": () => field.current?.focus(),
  });
  if (view?.id !== id) return <section class="page task"><p class="empty">Reading the task …</p></section>;
  const rows = view.rows.value;
  return (
    <section class="page task">
      <TaskHead view={view} />
      {view.problem.value !== undefined && <p class="problem">{view.problem.value}</p>}
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
          draw={(row) => <RowView row={row} />}
        />
      )}
      {!isFollowing.value && (
        <button type="button" class="to-end" onClick={() => (isFollowing.value = true)}>Follow <kbd>f</kbd></button>
      )}
      <Waiting view={view} />
      {view.errors.value.length > 0 && <p class="problem">{plain(view.errors.value.at(-1) ?? "")}</p>}
      <Composer view={view} field={field} />
    </section>
  );
}

function RowView({ row }: { row: Row }): JSX.Element {
  if (row.type === "item") return <Item view={row} />;
  if (row.type === "plan") return <Plan steps={row.steps.value} />;
  const turn = row.turn.value;
  return (
    <div class={`turn-mark ${turn.status}`}>
      <span>Turn {row.number}</span>
      <span class="status">{turn.status === "inProgress" ? "running" : turn.status}</span>
      {turn.durationMs !== null && <span>{duration(turn.durationMs)}</span>}
      {turn.startedAt !== null && <time>{moment(turn.startedAt * 1_000)}</time>}
      {turn.error !== null && <span class="error">{plain(turn.error.message)}</span>}
    </div>
  );
}

function TaskHead({ view }: { view: ThreadView }): JSX.Element {
  const task = tasks.value.get(view.id);
  const thread = view.thread.value;
  const usage = view.usage.value;
  const title = plain(thread?.name ?? task?.title ?? thread?.preview ?? "").slice(0, 300) || `Task ${shortId(view.id)}`;
  return (
    <header class="bar task-head">
      <a class="back" href="#/tasks" aria-label="All tasks">‹</a>
      <h1 title={title}>{title}</h1>
      {task !== undefined && <State state={task.state} />}
      <dl class="meta">
        {view.model.value !== "" && <div><dt>model</dt><dd>{plain(view.model.value)}</dd></div>}
        <div><dt>folder</dt><dd title={plain(thread?.cwd ?? "")}>{plain(shortPath(thread?.cwd ?? ""))}</dd></div>
        {typeof view.settings.value["approvalPolicy"] === "string" && <div><dt>asks</dt><dd>{view.settings.value["approvalPolicy"]}</dd></div>}
        <div><dt>id</dt><dd title={view.id}>{shortId(view.id)}</dd></div>
        {usage !== undefined && (
          <div>
            <dt>tokens</dt>
            <dd title={`${usage.total.inputTokens} in, ${usage.total.outputTokens} out`}>
              {count(usage.total.totalTokens)} <Spark values={view.usageOverTime.value} />
            </dd>
          </div>
        )}
      </dl>
      <Actions view={view} />
    </header>
  );
}

function Actions({ view }: { view: ThreadView }): JSX.Element {
  const id = view.id;
  const turn = view.runningTurn.value;
  const task = tasks.value.get(id);
  const put = (row: ReturnType<typeof rowOfTask>) => (tasks.value = new Map(tasks.peek()).set(id, row));
  const rename = () => {
    const name = prompt("A name for this task", view.thread.peek()?.name ?? "");
    if (name !== null && name.trim() !== "") void trying(() => connection.request("thread/name/set", { threadId: id, name }));
  };
  const archive = async () => {
    if (!confirm("Archive this task? Its process ends and it leaves the list.")) return;
    if (await trying(() => connection.request("thread/archive", { threadId: id }))) go("/tasks");
  };
  const fork = () =>
    trying(async () => go(`/task/${(await connection.request("thread/fork", { threadId: id })).thread.id}`));
  const resume = () =>
    trying(async () => {
      if (connection.isHost) put(rowOfTask((await connection.request("task/resume", { threadId: id })).task));
      else await view.load();
    });
  const suspend = () => trying(async () => put(rowOfTask((await connection.request("task/suspend", { threadId: id })).task)));
  return (
    <div class="actions">
      {turn !== undefined && (
        <button type="button" class="danger" onClick={() => void trying(() => connection.request("turn/interrupt", { threadId: id, turnId: turn }))}>
          Interrupt
        </button>
      )}
      {task !== undefined && !task.hasRuntime && <button type="button" onClick={() => void resume()}>Resume</button>}
      {connection.isHost && task?.hasRuntime === true && <button type="button" onClick={() => void suspend()}>Suspend</button>}
      <details class="more">
        <summary>More</summary>
        <div class="menu">
          <button type="button" onClick={rename}>Rename …</button>
          <button type="button" onClick={() => void fork()}>Fork</button>
          <button type="button" disabled={turn !== undefined} onClick={() => void trying(() => connection.request("thread/compact/start", { threadId: id }))}>Compact</button>
          <button type="button" onClick={() => void archive()}>Archive …</button>
        </div>
      </details>
    </div>
  );
}

/** What this task waits for, right where it happens. */
function Waiting({ view }: { view: ThreadView }): JSX.Element | null {
  const whole = useSignal(false);
  const entry = inbox.value.find((one) => one.taskId === view.id);
  useEffect(() => {
    whole.value = false;
    if (entry?.kind === "fileChange") void loadChanges(entry).catch((error: Error) => say(error.message, true));
  }, [entry?.key]);
  const shown = entry !== undefined && isShown(entry, new Set(whole.value ? [entry.key] : []));
  const choose = (choice: Choice, text?: string) => {
    if (entry !== undefined && !deciding.peek().has(entry.key)) void decideAndSay(entry, choice, text);
  };
  const approve = (choice: Choice) => {
    if (shown && entry.choices.includes(choice)) choose(choice);
  };
  useKeys({
    a: () => approve(entry?.isUnknown === true ? "retry" : "approve"),
    s: () => approve("approveForSession"),
    d: () => { if (entry?.choices.includes("reject") === true) choose("reject"); },
  });
  if (entry === undefined) return null;
  return (
    <div class="waiting-here">
      <PendingCard key={entry.key} entry={entry} isShown={shown} isWhole={whole.value} onWhole={() => (whole.value = true)} onChoice={choose} />
    </div>
  );
}

function Composer({ view, field }: { view: ThreadView; field: { current: HTMLTextAreaElement | null } }): JSX.Element {
  const text = useSignal("");
  const isSending = useSignal(false);
  /** The same for each try of one message: the server takes it once. */
  const inputId = useRef<string | undefined>(undefined);
  const turn = view.runningTurn.value;
  const send = async (event?: Event) => {
    event?.preventDefault();
    const words = text.peek().trim();
    if (words === "" || isSending.peek()) return;
    inputId.current ??= crypto.randomUUID?.() ?? String(Math.random()).slice(2);
    const input = [{ type: "text" as const, text: words, text_elements: [] }];
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
      inputId.current = undefined;
    }
  };
  return (
    <form class="composer" onSubmit={(event) => void send(event)}>
      <textarea
        ref={field}
        rows={Math.min(8, text.value.split("\n").length)}
        aria-label={turn === undefined ? "Start a turn" : "Add to the running turn"}
        placeholder={turn === undefined ? "Say what to do next ( / )" : "Steer the running turn ( / )"}
        value={text.value}
        onInput={(event) => { text.value = event.currentTarget.value; inputId.current = undefined; }}
        onKeyDown={(event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); void send(); } }}
      />
      <button type="submit" class="primary" disabled={text.value.trim() === "" || isSending.value}>
        {turn === undefined ? "Send" : "Steer"}
      </button>
    </form>
  );
}
