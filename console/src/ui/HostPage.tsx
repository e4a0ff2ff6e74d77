import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import type { Model } from "../../protocol";
import { plain } from "../safe/characters";
import { inbox } from "../state/inbox";
import { sortedTasks } from "../state/tasks";
import { connection } from "../wire/connection";

interface Facts {
  models: Model[];
  loaded: number;
  provider: string;
  approvalPolicy: string;
}

export function HostPage(): JSX.Element {
  const facts = useSignal<Facts | undefined>(undefined);
  const isReady = connection.state.value.type === "ready";
  useEffect(() => {
    if (!isReady) return;
    void (async () => {
      const [models, loaded, config] = await Promise.all([
        connection.request("model/list", {}),
        connection.request("thread/loaded/list", {}),
        connection.request("config/read", {}),
      ]);
      const provider = config.config.model_provider;
      const policy = config.config.approval_policy;
      facts.value = {
        models: models.data.filter((model) => !model.hidden),
        loaded: loaded.data.length,
        provider: typeof provider === "string" ? provider : "not chosen",
        approvalPolicy: typeof policy === "string" ? policy : "on-request",
      };
    })().catch(() => undefined);
  }, [isReady]);
  const server = connection.server.value;
  const all = sortedTasks.value;
  const number = (state: string) => all.filter((task) => task.state === state).length;
  const found = facts.value;
  const stats: [string, number | string, string][] = [
    ["tasks", all.length, ""],
    ["running", number("running"), "s-running"],
    ["waiting", number("waiting") + number("suspended"), "s-waiting"],
    ["decisions wanted", inbox.value.length, "s-waiting"],
    ["failed", number("failed"), "s-failed"],
    ["processes", found?.loaded ?? "…", ""],
  ];
  return (
    <section class="page host">
      <header class="bar"><h1>Host</h1></header>
      <div class="scroll" tabIndex={0} role="group" aria-label="About this server">
        <div class="stats">
          {stats.map(([name, value, tone]) => (
            <div class={`stat ${tone}`}><b>{value}</b><span>{name}</span></div>
          ))}
        </div>
        <div class="panels">
          <section>
            <h2>This server</h2>
            <dl class="facts">
              <div><dt>kind</dt><dd>{connection.isHost ? "host: tasks are kept, and outlive every process" : "app-server: threads end with it"}</dd></div>
              <div><dt>version</dt><dd>{plain(server?.userAgent ?? "")}</dd></div>
              <div><dt>home</dt><dd>{plain(server?.codexHome ?? "")}</dd></div>
              <div><dt>system</dt><dd>{plain(server?.platformOs ?? "")}</dd></div>
              <div><dt>features</dt><dd>{plain((server?.capabilities?.host?.features ?? []).join(", ")) || "none beyond the protocol"}</dd></div>
              <div><dt>provider</dt><dd>{plain(found?.provider ?? "…")}</dd></div>
              <div><dt>asks about</dt><dd>{plain(found?.approvalPolicy ?? "…")}</dd></div>
            </dl>
          </section>
          <section>
            <h2>Models</h2>
            <ul class="models">
              {(found?.models ?? []).map((model) => (
                <li><b>{plain(model.displayName)}</b>{model.isDefault && <span class="label">default</span>}<span>{plain(model.description)}</span></li>
              ))}
            </ul>
          </section>
        </div>
      </div>
    </section>
  );
}
