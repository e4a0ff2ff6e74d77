import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { AskForApproval, Model, ReasoningEffort, SandboxMode } from "../../protocol";
import { plain } from "../safe/characters";
import { trying } from "../state/announce";
import { placements, progress } from "../state/placements";
import { go } from "../state/route";
import { connection } from "../wire/connection";
import { inputOf, PictureButton, takePictures, Thumbs } from "./Pictures";

const OF_SERVER = "The server's default";
const POLICIES: [AskForApproval & string, string][] = [
  ["on-request", "what leaves the sandbox"],
  ["untrusted", "every command that is not known to be safe, every patch"],
  ["on-failure", "what the sandbox stopped"],
  ["never", "nothing; what would need a yes is refused"],
];
const SANDBOXES: [SandboxMode, string][] = [
  ["workspace-write", "the folder can be written"],
  ["read-only", "nothing can be written"],
  ["danger-full-access", "no sandbox"],
];

export function NewTask(): JSX.Element {
  const models = useSignal<Model[]>([]);
  const model = useSignal("");
  const cwd = useSignal(localStorage.getItem("oarlock.cwd") ?? "");
  const policy = useSignal<(AskForApproval & string) | "">("");
  const placement = useSignal("");
  const sandbox = useSignal<SandboxMode | "">("");
  const effort = useSignal<ReasoningEffort | "">("");
  const text = useSignal("");
  const pictures = useSignal<string[]>([]);
  const isBusy = useSignal(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const step = progress.value;
  /** Those of the host's configuration, and those that tasks were started in. */
  const configured = useSignal<string[]>([]);
  const names = [...new Set([...configured.value, ...[...placements.value.values()].map((place) => place.name)])].map(plain);
  const isReady = connection.state.value.type === "ready";
  const chosen = models.value.find((one) => (model.value === "" ? one.isDefault : one.model === model.value));
  const efforts = chosen?.supportedReasoningEfforts ?? [];
  useEffect(() => field.current?.focus(), []);
  useEffect(() => {
    if (!isReady) return;
    void connection.request("model/list", {}).then((page) => (models.value = page.data)).catch(() => undefined);
    const read = ({ config }: { config: object }) => (configured.value = Object.keys((config as { placements?: object }).placements ?? {}));
    if (connection.isHost) void connection.request("config/read", {}).then(read).catch(() => undefined);
  }, [isReady]);
  const start = async (event: Event) => {
    event.preventDefault();
    if (text.value.trim() === "" || isBusy.value) return;
    isBusy.value = true;
    await trying(async () => {
      const folder = cwd.value.trim();
      const place = placement.value.trim();
      progress.value = undefined;
      const opened = await connection.request("thread/start", {
        // Only choices of the person are sent: a default of the form would override the configuration, and containers refuse a sandbox.
        ...(policy.value === "" ? {} : { approvalPolicy: policy.value }),
        ...(sandbox.value === "" ? {} : { sandbox: sandbox.value }),
        ...(model.value === "" ? {} : { model: model.value }),
        ...(folder === "" ? {} : { cwd: folder }),
        ...(place === "" ? {} : { placement: place }),
      });
      localStorage.setItem("oarlock.cwd", folder);
      const input = inputOf(text.value, pictures.value);
      await connection.request("turn/start", { threadId: opened.thread.id, input, ...(effort.value === "" ? {} : { effort: effort.value }) });
      go(`/task/${opened.thread.id}`);
    });
    isBusy.value = false;
  };
  return (
    <section class="page new-task">
      <header class="bar"><h1>New task</h1></header>
      <form onSubmit={(event) => void start(event)} onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void start(event); }}>
        <label class="wide">
          <span>What is to be done</span>
          <textarea ref={field} rows={8} value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} onPaste={(event) => takePictures(event, event.clipboardData?.files, pictures)} placeholder="Describe the task. Pictures can be pasted." />
        </label>
        <Thumbs pictures={pictures} />
        <label>
          <span>Folder on the server</span>
          <input type="text" value={cwd.value} spellcheck={false} onInput={(event) => (cwd.value = event.currentTarget.value)} placeholder="The server's own" />
        </label>
        {connection.isHost && (
          <label>
            <span>Placement</span>
            <input type="text" list="places" value={placement.value} spellcheck={false} onInput={(event) => (placement.value = event.currentTarget.value)} placeholder="The default, or a name of the host's configuration" />
            <datalist id="places">{names.map((name) => <option value={name} />)}</datalist>
          </label>
        )}
        <label>
          <span>Model</span>
          <select value={model.value} onChange={(event) => (model.value = event.currentTarget.value)}>
            <option value="">{OF_SERVER}</option>
            {models.value.filter((one) => !one.hidden).map((one) => <option value={one.model}>{one.displayName}</option>)}
          </select>
        </label>
        {efforts.length > 0 && (
          <label>
            <span>Reasoning effort</span>
            <select value={effort.value} onChange={(event) => (effort.value = event.currentTarget.value as ReasoningEffort | "")}>
              <option value="">The model's default</option>
              {efforts.map((one) => <option value={one.reasoningEffort}>{plain(one.reasoningEffort)}: {plain(one.description)}</option>)}
            </select>
          </label>
        )}
        <label>
          <span>Asks about</span>
          <select value={policy.value} onChange={(event) => (policy.value = event.currentTarget.value as (AskForApproval & string) | "")}>
            <option value="">{OF_SERVER}</option>
            {POLICIES.map(([value, about]) => <option value={value}>{value}: {about}</option>)}
          </select>
        </label>
        <label>
          <span>Sandbox</span>
          <select class={sandbox.value === "danger-full-access" ? "hot" : ""} value={sandbox.value} onChange={(event) => (sandbox.value = event.currentTarget.value as SandboxMode | "")}>
            <option value="">{OF_SERVER}</option>
            {SANDBOXES.map(([value, about]) => <option value={value}>{value}: {about}</option>)}
          </select>
        </label>
        {isBusy.value && step !== undefined && (
          <p class="wide reason" role="status">{step.step}{step.total === null ? "" : ` ${Math.floor((100 * step.done) / Math.max(1, step.total))} %`} {plain(step.line ?? "").slice(0, 160)}</p>
        )}
        {sandbox.value === "danger-full-access" && (
          <p class="wide warning">Commands run without a sandbox: they can change and read everything that the user who runs them can.</p>
        )}
        <div class="wide form-end">
          <button type="submit" class="primary" disabled={isBusy.value || text.value.trim() === ""}>Start</button>
          <PictureButton pictures={pictures} />
          <span class="hint wide-only"><kbd>Ctrl</kbd> <kbd>Enter</kbd> starts it too</span>
        </div>
      </form>
    </section>
  );
}
