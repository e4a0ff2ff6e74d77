import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";

import type { TaskStatus } from "../../protocol";
import { plain } from "../safe/characters";
import { readableError } from "../safe/errors";
import { trying } from "../state/announce";
import { useKeys } from "../state/keys";
import { placements } from "../state/placements";
import { mayOperate } from "../state/role";
import { go } from "../state/route";
import { agents, isLoading, loadProblem, reload, showsArchived, sortedTasks, toggleAgents, type TaskRow } from "../state/tasks";
import { spent } from "../state/usage";
import { age, count, moment, money, now, shortId, shortPath } from "./format";
import { State } from "./State";
import { Virtual } from "./Virtual";

/** Up to this width a row has two lines, as the style sheet says. */
const PHONE = 720;

const FILTERS: TaskStatus[] = ["waiting", "running", "failed", "suspended", "waitingForCarrier", "queued", "creating", "idle"];
/** Filters that are always offered. Others appear when a task is in that state. */
const COMMON = new Set<TaskStatus>(["waiting", "running", "failed", "suspended", "idle"]);

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
        words.every((word) => searched(task).toLowerCase().includes(word)),
    );
  }, [all, search.value, filter.value]);
  const lines = useMemo(() => withAgents(rows, agents.value), [rows, agents.value]);
  const chosen = Math.min(at.value, Math.max(0, lines.length - 1));
  const line = lines[chosen];
  const open = () => {
    if (line !== undefined) go(`/task/${line.row.id}`);
  };
  const unfold = (isWanted: boolean) => {
    if (line !== undefined && line.row.children > 0 && agents.peek().has(line.row.id) !== isWanted) void trying(() => toggleAgents(line.row.id));
  };
  useKeys({
    j: () => (at.value = Math.min(lines.length - 1, chosen + 1)),
    k: () => (at.value = Math.max(0, chosen - 1)),
    ArrowDown: () => (at.value = Math.min(lines.length - 1, chosen + 1)),
    ArrowUp: () => (at.value = Math.max(0, chosen - 1)),
    ArrowRight: () => unfold(true),
    ArrowLeft: () => unfold(false),
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
          {FILTERS.filter((state) => COMMON.has(state) || (totals.get(state) ?? 0) > 0).map((state) => (
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
          placeholder="Search"
          aria-label="Search tasks"
          value={search.value}
          onInput={(event) => (search.value = event.currentTarget.value)}
        />
      </header>
      {loadProblem.value !== undefined && <p class="problem">{plain(loadProblem.value)}</p>}
      <div class="table" role="table" aria-label="Tasks" aria-rowcount={lines.length + 1}>
        <div role="rowgroup">
          <div class="row head" role="row" aria-rowindex={1}>
            {["State", "Task", "Waits", "Model", "Place", "Cost", "Changed", "Age"].map((name) => (
              <span role="columnheader">{name}</span>
            ))}
          </div>
        </div>
        {rows.length === 0 ? (
          <Nothing hasTasks={all.length > 0} />
        ) : (
          <Virtual
            rows={lines}
            keyOf={({ row }) => row.id}
            estimate={innerWidth <= PHONE ? 53 : 34}
            role="rowgroup"
            label="Tasks"
            focus={chosen}
            draw={({ row, depth }, index) => <TaskLine row={row} depth={depth} index={index} isChosen={index === chosen} />}
          />
        )}
      </div>
    </section>
  );
}

function searched(task: TaskRow): string {
  const place = task.placementId === undefined ? "" : (placements.peek().get(task.placementId)?.name ?? "");
  const labels = Object.entries(task.labels).map(([key, value]) => `${key}=${value}`);
  return `${task.title} ${task.cwd} ${task.id} ${task.model} ${place} ${task.state} ${labels.join(" ")}`;
}

function Nothing({ hasTasks }: { hasTasks: boolean }): JSX.Element {
  if (isLoading.value && !hasTasks) return <p class="empty">Reading the tasks …</p>;
  if (hasTasks) return <p class="empty">No task is like that.</p>;
  return (
    <p class="empty">
      There are no tasks. {mayOperate() && <><a href="#/new">Start one</a>, or connect</>}{!mayOperate() && "Connect"} a client to this server.
    </p>
  );
}

interface Line {
  row: TaskRow;
  /** 0 for a task, 1 for its agents, 2 for theirs. */
  depth: number;
}

/** Tasks in order, each followed by its unfolded agents, and these by theirs. */
function withAgents(rows: readonly TaskRow[], agents: ReadonlyMap<string, readonly TaskRow[]>): Line[] {
  const lines: Line[] = [];
  for (const row of rows) {
    lines.push({ row, depth: 0 });
    const all = agents.get(row.id) ?? [];
    const known = new Set(all.map((agent) => agent.id));
    const add = (parent: string, depth: number) => {
      for (const agent of all) {
        const isHere = agent.parentId === parent || (depth === 1 && !known.has(agent.parentId ?? ""));
        if (!isHere || depth > 16) continue;
        lines.push({ row: agent, depth });
        add(agent.id, depth + 1);
      }
    };
    add(row.id, 1);
  }
  return lines;
}

function Cost({ id }: { id: string }): JSX.Element {
  const sum = spent.value.get(id);
  if (sum === undefined || sum.tokens === 0) return <span class="nil">–</span>;
  const tokens = `${sum.tokens.toLocaleString("en")} tokens`;
  if (sum.micros === 0) return <span class="nil" title={`${tokens}; the model has no price`}>{count(sum.tokens)} tok</span>;
  return <span title={tokens}>{money(sum.micros)}</span>;
}

function Place({ row }: { row: TaskRow }): JSX.Element {
  const place = row.placementId === undefined ? undefined : placements.value.get(row.placementId);
  // Agents have no folder of their own: they work where their task does.
  const name = row.cwd === "" && place === undefined ? "–" : plain(place?.name ?? shortPath(row.cwd));
  return (
    <span role="cell" class="folder" title={plain(place === undefined ? row.cwd : `${place.name}: ${place.workspace ?? row.cwd}`)}>
      {row.hasRuntime && <><span class="live" title="A process works for it" aria-hidden="true" /><span class="sr-only">live: </span></>}
      {name}
    </span>
  );
}

function TaskLine({ row, depth, index, isChosen }: Line & { index: number; isChosen: boolean }): JSX.Element {
  const title = plain(row.title).slice(0, 300);
  const isOpen = agents.value.has(row.id);
  return (
    <div class={`row ${isChosen ? "chosen" : ""}`} role="row" aria-rowindex={index + 2}>
      <span role="cell" title={row.problem === undefined ? undefined : plain(readableError(row.problem).message)}><State state={row.state} /></span>
      <span role="cell" class={`title depth-${Math.min(depth, 4)}`}>
        {row.children > 0 && (
          <button type="button" class="quiet fold" aria-expanded={isOpen} aria-label={`${row.children} agents`} onClick={() => void trying(() => toggleAgents(row.id))}>
            {isOpen ? "▾" : "▸"} {row.children}
          </button>
        )}
        <a href={`#/task/${row.id}`}>{title === "" ? "(nothing said yet)" : title}</a>
        {row.problem !== undefined && <span class="row-problem">{plain(readableError(row.problem).message).slice(0, 160)}</span>}
        {Object.entries(row.labels).map(([key, value]) => <span class="label">{plain(`${key}=${value}`)}</span>)}
        <span class="id">{shortId(row.id)}</span>
      </span>
      <span role="cell" class="waits">
        {row.waiting > 0 ? <a href="#/inbox" aria-label={`${row.waiting} waiting; open the inbox`}>{row.waiting}</a> : <span class="nil">–</span>}
      </span>
      <span role="cell" class="model" title={plain(row.model)}>{row.model === "" ? <span class="nil">–</span> : plain(row.model)}</span>
      <Place row={row} />
      <span role="cell" class="cost">{depth === 0 ? <Cost id={row.id} /> : ""}</span>
      <span role="cell" class="time" title={moment(row.updatedAtMs)}>{age(row.updatedAtMs, now.value)}</span>
      <span role="cell" class="time" title={moment(row.createdAtMs)}>{age(row.createdAtMs, now.value)}</span>
    </div>
  );
}
