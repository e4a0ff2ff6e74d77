import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";

import type { Model, PlacementInfo, ReplicaInfo, UsageSum } from "../../protocol";
import { plain } from "../safe/characters";
import { inbox } from "../state/inbox";
import { placements } from "../state/placements";
import { roleName } from "../state/role";
import { sortedTasks, tasks } from "../state/tasks";
import { sums } from "../state/usage";
import { connection } from "../wire/connection";
import { age, count, moment, money, now, shortId, shortPath } from "./format";
import { UsageChart } from "./UsageChart";

interface Facts {
  models: Model[];
  loaded: number | undefined;
  provider: string;
  approvalPolicy: string;
  replicas: ReplicaInfo[];
  /** The beginning of the first day of `days`. */
  sinceMs: number;
  days: UsageSum[];
  byModel: UsageSum[];
  byProvider: UsageSum[];
}

const DAYS = 30;
const REFRESH_MS = 10_000;

/** Reads everything the page shows. Requests that the role or the kind of server refuses count as empty. */
async function readFacts(): Promise<Facts> {
  const day = 86_400_000;
  const sinceMs = (Math.floor(Date.now() / day) - DAYS + 1) * day;
  const [models, loaded, config, replicas, days, byModel, byProvider] = await Promise.all([
    connection.request("model/list", {}).then((page) => page.data).catch(() => []),
    connection.request("thread/loaded/list", {}).then((page) => page.data.length).catch(() => undefined),
    connection.request("config/read", {}).then((answer) => answer.config).catch(() => undefined),
    connection.isHost ? connection.request("replica/list", {}).then((page) => page.data).catch(() => []) : [],
    sums("day", { sinceMs }).catch(() => []),
    sums("model", { sinceMs }).catch(() => []),
    sums("provider", { sinceMs }).catch(() => []),
  ]);
  const provider = config?.model_provider;
  const policy = config?.approval_policy;
  return {
    models: models.filter((model) => !model.hidden),
    loaded,
    provider: typeof provider === "string" ? provider : "not told",
    approvalPolicy: typeof policy === "string" ? policy : config === undefined ? "not told" : "on-request",
    replicas,
    sinceMs,
    days,
    byModel,
    byProvider,
  };
}

export function HostPage(): JSX.Element {
  const facts = useSignal<Facts | undefined>(undefined);
  const isReady = connection.state.value.type === "ready";
  useEffect(() => {
    if (!isReady) return undefined;
    const read = () => void readFacts().then((found) => (facts.value = found)).catch(() => undefined);
    read();
    const timer = setInterval(() => { if (document.visibilityState === "visible") read(); }, REFRESH_MS);
    return () => clearInterval(timer);
  }, [isReady]);
  const server = connection.server.value;
  const all = sortedTasks.value;
  const number = (state: string) => all.filter((task) => task.state === state).length;
  const found = facts.value;
  const places = [...placements.value.values()];
  const stats: [string, number | string, string][] = [
    ["tasks", all.length, ""],
    ["running", number("running"), "s-running"],
    ...(number("queued") > 0 ? [["queued", number("queued"), ""] as [string, number, string]] : []),
    ["waiting", number("waiting") + number("suspended") + number("waitingForCarrier"), "s-waiting"],
    ["to decide", inbox.value.length, "s-waiting"],
    ["failed", number("failed"), "s-failed"],
    ["processes", found?.loaded ?? "…", ""],
  ];
  return (
    <section class="page host">
      <header class="bar"><h1>Host</h1></header>
      <div class="scroll" tabIndex={0} role="group" aria-label="About this server">
        <div class="stats">
          {stats.map(([name, value, tone]) => (
            <div class={`stat ${value === 0 ? "zero" : tone}`}><b>{value}</b><span>{name}</span></div>
          ))}
        </div>
        <div class="panels">
          {found !== undefined && connection.isHost && <Usage facts={found} />}
          {connection.isHost && <Places places={places} />}
          {found !== undefined && found.replicas.length > 0 && <Replicas replicas={found.replicas} />}
          <Panel name="This server">
            <dl class="facts">
              <div><dt>kind</dt><dd>{connection.isHost ? "host: tasks are kept, and outlive every process" : "app-server: threads end with it"}</dd></div>
              <div><dt>version</dt><dd title={plain(server?.userAgent ?? "")}>{versionOf(server?.userAgent ?? "")}</dd></div>
              <div><dt>home</dt><dd>{plain(server?.codexHome ?? "")}</dd></div>
              <div><dt>system</dt><dd>{plain(server?.platformOs ?? "")}</dd></div>
              <div><dt>features</dt><dd>{plain((server?.capabilities?.host?.features ?? []).join(", ")) || "none beyond the protocol"}</dd></div>
              {connection.isHost && <div><dt>you are</dt><dd>{plain(roleName())}</dd></div>}
              <div><dt>provider</dt><dd>{plain(found?.provider ?? "…")}</dd></div>
              <div><dt>asks about</dt><dd>{plain(found?.approvalPolicy ?? "…")}</dd></div>
            </dl>
          </Panel>
          <Panel name="Models">
            <ul class="models">
              {(found?.models ?? []).map((model) => (
                <li><b>{plain(model.displayName)}</b>{model.isDefault && <span class="label">default</span>}<span>{plain(model.description)}</span></li>
              ))}
            </ul>
          </Panel>
        </div>
      </div>
    </section>
  );
}

/** `NAME/VERSION (SYSTEM) …` begins with the client's own name; the version is the server's. */
function versionOf(userAgent: string): string {
  return plain(/^[^/]*\/([^ ]+)/.exec(userAgent)?.[1] ?? userAgent);
}

function Panel({ name, isWide, children }: { name: string; isWide?: boolean; children: ComponentChildren }): JSX.Element {
  return (
    <section class={isWide === true ? "wide" : ""}>
      <h2>{name}</h2>
      {children}
    </section>
  );
}

const NUMBERS = new Set(["requests", "in", "cached", "out", "cost", "tasks"]);

function Table({ name, head, rows }: { name: string; head: string[]; rows: ComponentChildren[][] }): JSX.Element {
  return (
    <div class="scroll-x" tabIndex={0} role="group" aria-label={name}>
      <table class="list">
        <thead><tr>{head.map((title) => <th scope="col" class={NUMBERS.has(title) ? "number" : ""}>{title}</th>)}</tr></thead>
        <tbody>{rows.map((row) => <tr>{row.map((cell, at) => <td class={NUMBERS.has(head[at] ?? "") ? "number" : ""}>{cell}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

/** `cached` is a part of `in`. */
const SUM_HEAD = ["requests", "in", "cached", "out", "cost"];

function sumCells(sum: UsageSum): string[] {
  return [count(sum.requests), count(sum.inputTokens), count(sum.cachedInputTokens), count(sum.outputTokens), sum.costMicros === 0 ? "–" : money(sum.costMicros)];
}

function Usage({ facts }: { facts: Facts }): JSX.Element {
  if (facts.days.length === 0) {
    return <Panel name="Usage" isWide><p class="reason">No model was asked in the last {DAYS} days.</p></Panel>;
  }
  const rows = (found: UsageSum[]) => found.map((sum) => [plain(sum.key), ...sumCells(sum)]);
  return (
    <Panel name={`Usage of the last ${DAYS} days`} isWide>
      <UsageChart sums={facts.days} unit="day" sinceMs={facts.sinceMs} />
      <div class="tables">
        <Table name="Usage by day" head={["day", ...SUM_HEAD]} rows={rows(facts.days.toReversed())} />
        <div>
          <Table name="Usage by model" head={["model", ...SUM_HEAD]} rows={rows(facts.byModel)} />
          <Table name="Usage by provider" head={["provider", ...SUM_HEAD]} rows={rows(facts.byProvider)} />
        </div>
      </div>
    </Panel>
  );
}

function Places({ places }: { places: PlacementInfo[] }): JSX.Element {
  return (
    <Panel name="Placements" isWide>
      {places.length === 0 ? (
        <p class="reason">Every task works on this machine, in its own folder.</p>
      ) : (
        <Table
          name="Placements"
          head={["name", "state", "site", "workspace", "snapshot", "used", "by"]}
          rows={places.map((place) => [
            plain(place.name),
            <span class={`place-${place.status}`} title={place.separation === "none" ? "Commands there can speak for the runtime: approvals are advice." : undefined}>
              {place.status}{place.separation === "none" && " · approvals are advice"}
            </span>,
            plain(place.site),
            <code>{plain(place.workspace ?? "–")}</code>,
            place.snapshotAtMs === null ? "–" : <span title={plain(place.snapshot ?? "")}>{moment(place.snapshotAtMs)}</span>,
            `${age(place.usedAtMs, now.value)} ago`,
            place.threadIds.length === 0 ? "–" : place.threadIds.map((id) => <><a href={`#/task/${id}`}>{plain(tasks.value.get(id)?.title ?? "").slice(0, 40) || shortId(id)}</a>{" "}</>),
          ])}
        />
      )}
    </Panel>
  );
}

/** An address for the table: of a Unix socket the end of its path. */
function addressOf(address: string): string {
  if (address === "") return "–";
  return plain(address.startsWith("unix:") || address.startsWith("/") ? shortPath(address) : address);
}

function Replicas({ replicas }: { replicas: ReplicaInfo[] }): JSX.Element {
  return (
    <Panel name="Hosts of this store" isWide>
      <Table
        name="Hosts of this store"
        head={["name", "lease", "address", "sites", "tasks"]}
        rows={replicas.map((one) => [
          <>{plain(one.id)}{one.isThis && <span class="label">this one</span>}</>,
          one.leaseEndsAtMs === null
            ? "does not expire"
            : one.isAlive
              ? `holds, ${Math.max(0, Math.round((one.leaseEndsAtMs - now.value) / 1_000))} s left`
              : `over since ${moment(one.leaseEndsAtMs)}`,
          <span title={plain(one.address)}>{addressOf(one.address)}</span>,
          plain(one.sites.join(", ")) || "–",
          String(one.tasks),
        ])}
      />
    </Panel>
  );
}
