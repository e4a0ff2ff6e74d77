import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";

import type { TaskStatus } from "../../protocol";
import { plain } from "../safe/characters";
import { useKeys } from "../state/keys";
import { go } from "../state/route";
import { isLoading, loadProblem, reload, showsArchived, sortedTasks, type TaskRow } from "../state/tasks";
import { age, moment, now, shortId, shortPath } from "./format";
import { State } from "./State";
import { Virtual } from "./Virtual";

const FILTERS: TaskStatus[] = ["waiting", "running", "failed", "suspended", "idle"];

export function TasksPage(): JSX.Element {
  const search = useSignal("");
  const filter = useSignal<TaskStatus | undefined>(undefined);
  const at = useSignal(0);
  const field = useRef<HTMLInputElement>(null);
  const all = sortedTasks.value;
  const totals = useMemo(() => {
    const found = new Map<TaskStatus, number>();
    for (const task of all) found.set(task.state, (found.get(task.state) ?? 0) + 1);
    return found;
  }, [all]);
  const rows = useMemo(() => {
    const words = search.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    return all.filter(
      (task) =>
        (filter.value === undefined || task.state === filter.value) &&
        words.every((word) => `${task.title} ${task.cwd} ${task.id} ${Object.values(task.labels).join(" ")}`.toLowerCase().includes(word)),
    );
  }, [all, search.value, filter.value]);
  const chosen = Math.min(at.value, Math.max(0, rows.length - 1));
  const open = () => {
    const row = rows[chosen];
    if (row !== undefined) go(`/task/${row.id}`);
  };
  useKeys({
    j: () => (at.value = Math.min(rows.length - 1, chosen + 1)),
    k: () => (at.value = Math.max(0, chosen - 1)),
    ArrowDown: () => (at.value = Math.min(rows.length - 1, chosen + 1)),
    ArrowUp: () => (at.value = Math.max(0, chosen - 1)),
    Enter: open,
    "/": () => field.current?.focus(),
  });
  return (
    <section class="page tasks">
      <header class="bar">
        <h1>Tasks</h1>
        <div class="chips" role="group" aria-label="States">
          <button type="button" aria-pressed={filter.value === undefined} onClick={() => (filter.value = undefined)}>
            all <b>{all.length}</b>
          </button>
          {FILTERS.map((state) => (
            <button
              type="button"
              class={`s-${state}`}
              aria-pressed={filter.value === state}
              onClick={() => (filter.value = filter.value === state ? undefined : state)}
            >
              <span class="dot" />
              {state} <b>{totals.get(state) ?? 0}</b>
            </button>
          ))}
        </div>
        <label class="check">
          <input
            type="checkbox"
            checked={showsArchived.value}
            onChange={(event) => { showsArchived.value = event.currentTarget.checked; void reload(); }}
          />
          archived
        </label>
        <input
          ref={field}
          class="search"
          type="search"
          placeholder="Search ( / )"
          aria-label="Search tasks"
          value={search.value}
          onInput={(event) => (search.value = event.currentTarget.value)}
        />
      </header>
      {loadProblem.value !== undefined && <p class="problem">{loadProblem.value}</p>}
      <div class="table" role="table" aria-label="Tasks" aria-rowcount={rows.length + 1}>
        <div role="rowgroup">
          <div class="row head" role="row" aria-rowindex={1}>
            {["State", "Task", "Waits", "Process", "Folder", "Changed", "Age"].map((name) => (
              <span role="columnheader">{name}</span>
            ))}
          </div>
        </div>
        {rows.length === 0 ? (
          <Nothing hasTasks={all.length > 0} />
        ) : (
          <Virtual
            rows={rows}
            keyOf={(row) => row.id}
            estimate={34}
            role="rowgroup"
            label="Tasks"
            focus={chosen}
            draw={(row, index) => <TaskLine row={row} index={index} isChosen={index === chosen} />}
          />
        )}
      </div>
    </section>
  );
}

function Nothing({ hasTasks }: { hasTasks: boolean }): JSX.Element {
  if (isLoading.value && !hasTasks) return <p class="empty">Reading the tasks …</p>;
  if (hasTasks) return <p class="empty">No task is like that.</p>;
  return (
    <p class="empty">
      There are no tasks. <a href="#/new">Start one</a>, or connect a client to this server.
    </p>
  );
}

function TaskLine({ row, index, isChosen }: { row: TaskRow; index: number; isChosen: boolean }): JSX.Element {
  const title = plain(row.title).slice(0, 300);
  return (
    <div class={`row ${isChosen ? "chosen" : ""}`} role="row" aria-rowindex={index + 2}>
      <span role="cell"><State state={row.state} /></span>
      <span role="cell" class="title">
        <a href={`#/task/${row.id}`}>{title === "" ? "(nothing said yet)" : title}</a>
        {Object.entries(row.labels).map(([key, value]) => <span class="label">{plain(`${key}=${value}`)}</span>)}
        <span class="id">{shortId(row.id)}</span>
      </span>
      <span role="cell" class="waits">
        {row.waiting > 0 ? <a href="#/inbox" aria-label={`${row.waiting} waiting; open the inbox`}>{row.waiting}</a> : <span class="nil">–</span>}
      </span>
      <span role="cell" class="process">{row.hasRuntime ? "live" : <span class="nil">none</span>}</span>
      <span role="cell" class="folder" title={plain(row.cwd)}>{plain(shortPath(row.cwd))}</span>
      <span role="cell" class="time" title={moment(row.updatedAtMs)}>{age(row.updatedAtMs, now.value)}</span>
      <span role="cell" class="time" title={moment(row.createdAtMs)}>{age(row.createdAtMs, now.value)}</span>
    </div>
  );
}
