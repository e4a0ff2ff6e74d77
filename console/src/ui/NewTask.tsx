import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { AskForApproval, Model, SandboxMode, UserInput } from "../../protocol";
import { say, trying } from "../state/announce";
import { go } from "../state/route";
import { connection } from "../wire/connection";

const POLICIES: [AskForApproval & string, string][] = [
  ["on-request", "what leaves the sandbox"],
  ["untrusted", "every command that is not known to be safe, every patch"],
  ["on-failure", "what the sandbox stopped"],
  ["never", "nothing; what would need a yes is refused"],
];
const SANDBOXES: [SandboxMode, string][] = [
  ["workspace-write", "the folder can be written"],
  ["read-only", "nothing can be written"],
  ["danger-full-access", "as the user who runs the server"],
];
const MAX_PICTURE = 8 * 1024 * 1024;

export function NewTask(): JSX.Element {
  const models = useSignal<Model[]>([]);
  const model = useSignal("");
  const cwd = useSignal(localStorage.getItem("oarlock.cwd") ?? "");
  const policy = useSignal<AskForApproval & string>("on-request");
  const sandbox = useSignal<SandboxMode>("workspace-write");
  const text = useSignal("");
  const pictures = useSignal<string[]>([]);
  const isBusy = useSignal(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const isReady = connection.state.value.type === "ready";
  useEffect(() => field.current?.focus(), []);
  useEffect(() => {
    if (isReady) void connection.request("model/list", {}).then((page) => (models.value = page.data)).catch(() => undefined);
  }, [isReady]);
  const paste = (event: ClipboardEvent) => {
    for (const file of event.clipboardData?.files ?? []) {
      if (!/^image\/(png|jpeg|gif|webp)$/.test(file.type)) continue;
      event.preventDefault();
      if (file.size > MAX_PICTURE) {
        say("The picture is larger than 8 MB.", true);
        continue;
      }
      const reader = new FileReader();
      reader.onload = () => (pictures.value = [...pictures.peek(), String(reader.result)]);
      reader.readAsDataURL(file);
    }
  };
  const start = async (event: Event) => {
    event.preventDefault();
    if (text.value.trim() === "" || isBusy.value) return;
    isBusy.value = true;
    await trying(async () => {
      const folder = cwd.value.trim();
      const opened = await connection.request("thread/start", {
        approvalPolicy: policy.value,
        sandbox: sandbox.value,
        ...(model.value === "" ? {} : { model: model.value }),
        ...(folder === "" ? {} : { cwd: folder }),
      });
      localStorage.setItem("oarlock.cwd", folder);
      const input: UserInput[] = [
        { type: "text", text: text.value, text_elements: [] },
        ...pictures.value.map((url) => ({ type: "image" as const, url })),
      ];
      await connection.request("turn/start", { threadId: opened.thread.id, input });
      go(`/task/${opened.thread.id}`);
    });
    isBusy.value = false;
  };
  return (
    <section class="page new-task">
      <header class="bar"><h1>New task</h1></header>
      <form onSubmit={(event) => void start(event)}>
        <label class="wide">
          <span>What is to be done</span>
          <textarea ref={field} rows={8} value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} onPaste={paste} placeholder="Pictures can be pasted" />
        </label>
        {pictures.value.length > 0 && (
          <div class="thumbs">
            {pictures.value.map((url, index) => (
              <button type="button" aria-label={`Remove picture ${index + 1}`} onClick={() => (pictures.value = pictures.value.filter((_, at) => at !== index))}>
                <img src={url} alt="" />
              </button>
            ))}
          </div>
        )}
        <label>
          <span>Folder on the server</span>
          <input type="text" value={cwd.value} spellcheck={false} onInput={(event) => (cwd.value = event.currentTarget.value)} placeholder="The server's own" />
        </label>
        <label>
          <span>Model</span>
          <select value={model.value} onChange={(event) => (model.value = event.currentTarget.value)}>
            <option value="">The server's default</option>
            {models.value.filter((one) => !one.hidden).map((one) => <option value={one.model}>{one.displayName}</option>)}
          </select>
        </label>
        <label>
          <span>Asks about</span>
          <select value={policy.value} onChange={(event) => (policy.value = event.currentTarget.value as AskForApproval & string)}>
            {POLICIES.map(([value, about]) => <option value={value}>{value}: {about}</option>)}
          </select>
        </label>
        <label>
          <span>Sandbox</span>
          <select value={sandbox.value} onChange={(event) => (sandbox.value = event.currentTarget.value as SandboxMode)}>
            {SANDBOXES.map(([value, about]) => <option value={value}>{value}: {about}</option>)}
          </select>
        </label>
        <div class="wide"><button type="submit" class="primary" disabled={isBusy.value || text.value.trim() === ""}>Start</button></div>
      </form>
    </section>
  );
}
