// One thing that waits: what exactly would happen, where, why, and the decisions there are.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { hasHidden, plain } from "../safe/characters";
import { changesOf } from "../state/changes";
import { deciding, type Choice, type Pending } from "../state/inbox";
import { placements } from "../state/placements";
import { mayDecide, mayOperate } from "../state/role";
import { route } from "../state/route";
import { commandText, editableOf, scriptOf, shellLine, textsOf, type EditableText } from "../state/shown";
import { tasks } from "../state/tasks";
import { AnswerForm } from "./AnswerForm";
import { age, moment, now, shortId } from "./format";
import { Questions } from "./Questions";
import { Diff, Exact, Visible } from "./Text";

const KINDS: Record<string, string> = {
  permission: "more access",
  fileChange: "patch",
  userInput: "question",
  elicitation: "question",
  function: "tool",
  mcp: "MCP tool",
};

export function kindName(kind: string): string {
  return KINDS[kind] ?? plain(kind);
}

export function summaryOf(entry: Pending): string {
  const command = commandText(entry);
  if (command !== undefined) return plain(command).slice(0, 160);
  if (entry.files !== undefined) return plain(entry.files.map((file) => file.split("/").at(-1)).join(", ")).slice(0, 160);
  if (entry.questions?.[0] !== undefined) return plain(entry.questions[0].question).slice(0, 160);
  return plain(`${entry.tool} ${JSON.stringify(entry.arguments ?? {})}`).slice(0, 160);
}

/** The reason that the agent or the policy gives; else the general one for being asked. */
function whyOf(entry: Pending): string | undefined {
  if (entry.reason !== undefined) return entry.reason;
  if (entry.isUnknown || entry.questions !== undefined) return undefined;
  if (entry.kind === "command") {
    return entry.isSandboxed === false ? "It would run outside of the sandbox." : "It is not known to be safe, and the task asks about everything else.";
  }
  if (entry.kind === "fileChange") return "The task asks about every change of files.";
  return undefined;
}

const LABELS: Record<Choice, string> = {
  approve: "Approve",
  approveForSession: "Approve for session",
  replace: "Edit …",
  retry: "Run again",
  reject: "Decline",
  rejectAndStop: "Decline and stop the turn",
  respond: "Answer instead",
};
const KEYS: Partial<Record<Choice, string>> = { approve: "a", retry: "a", approveForSession: "s", reject: "d" };
const ORDER: Choice[] = ["approve", "retry", "approveForSession", "reject", "rejectAndStop"];

interface CardProps {
  entry: Pending;
  /** Everything that would happen is on the screen, so it may be approved. */
  isShown: boolean;
  /** Long texts are shown whole, not by their beginning and end. */
  isWhole: boolean;
  /** It appeared by itself just now. Its buttons wait, so that a click meant for another entry does nothing. */
  isFresh: boolean;
  onWhole: () => void;
  onChoice: (choice: Choice, text?: string) => void;
}

export function PendingCard({ entry, isShown, isWhole, isFresh, onWhole, onChoice }: CardProps): JSX.Element {
  const task = tasks.value.get(entry.taskId);
  const message = useSignal("");
  const isBusy = isFresh || deciding.value.has(entry.key);
  return (
    <article class={`card ${isFresh ? "fresh" : ""}`} aria-label={`${kindName(entry.kind)}: ${summaryOf(entry)}`}>
      <header>
        <span class={`kind k-${plain(entry.kind)}`}>{kindName(entry.kind)}</span>
        <span class="tool">{plain(entry.tool)}</span>
        <span class="since" title={moment(entry.sinceMs)}>waits for {age(entry.sinceMs, now.value)}</span>
      </header>
      {entry.isUnknown && (
        <p class="warning">
          It had begun when its process ended, and nobody knows how far it came. Running it again may do it twice.
        </p>
      )}
      {whyOf(entry) !== undefined && <p class="reason"><b>Why it asks:</b> <Visible text={whyOf(entry) ?? ""} /></p>}
      <What entry={entry} isWhole={isWhole} />
      <Facts entry={entry} isWhole={isWhole} />
      {route.value.page === "inbox" && (
        <p class="from">
          From <a href={`#/task/${entry.taskId}`}>{plain(task?.title ?? "").slice(0, 160) || `task ${shortId(entry.taskId)}`}</a>
        </p>
      )}
      {entry.agentPath.length > 1 && <p class="from">Asked by {plain(entry.agentPath.join(" › "))}</p>}
      {!isShown &&
        (entry.kind === "fileChange" && changesOf(entry) === undefined ? (
          <p class="warning">
            {mayOperate()
              ? "The changes are being read. They can be approved once they are shown."
              : "The changes are too long to be kept with the operation. They can be approved once somebody who operates has opened the task."}
          </p>
        ) : (
          <p class="warning">
            It is long, and not all of it is shown. <button type="button" onClick={onWhole}>Show all of it</button>
          </p>
        ))}
      {!mayDecide() ? (
        <p class="reason">This token looks and does not decide.</p>
      ) : entry.questions !== undefined ? (
        <Questions questions={entry.questions} isBusy={isBusy} onAnswer={(text) => onChoice("respond", text)} />
      ) : entry.form !== undefined ? (
        <AnswerForm key={entry.key} form={entry.form} isBusy={isBusy || !isShown} onAnswer={(text) => onChoice("respond", text)} />
      ) : (
        <Decisions entry={entry} isShown={isShown} isBusy={isBusy} message={message.value} onMessage={(text) => (message.value = text)} onChoice={onChoice} />
      )}
    </article>
  );
}

interface DecisionsProps {
  entry: Pending;
  isShown: boolean;
  isBusy: boolean;
  message: string;
  onMessage: (text: string) => void;
  onChoice: (choice: Choice, text?: string) => void;
}

function Decisions({ entry, isShown, isBusy, message, onMessage, onChoice }: DecisionsProps): JSX.Element {
  const isEditing = useSignal(false);
  const editable = editableOf(entry);
  if (editable !== undefined && isEditing.value) {
    return <Edit key={entry.digest} editable={editable} isBusy={isBusy} onDone={(text) => onChoice("replace", text)} onLeave={() => (isEditing.value = false)} />;
  }
  const isYes = (choice: Choice) => choice === "approve" || choice === "approveForSession" || choice === "retry";
  return (
    <footer>
      <div class="decisions">
        {ORDER.filter((choice) => entry.choices.includes(choice)).map((choice) => (
          <button
            type="button"
            class={`d-${choice} ${choice === "approve" || choice === "retry" ? "primary" : isYes(choice) ? "" : "danger"}`}
            disabled={isBusy || (isYes(choice) && !isShown)}
            onClick={() => onChoice(choice, isYes(choice) ? "" : message)}
          >
            {LABELS[choice]} {KEYS[choice] !== undefined && <kbd>{KEYS[choice]}</kbd>}
          </button>
        ))}
        {editable !== undefined && (
          <button type="button" class="d-replace" disabled={isBusy || !isShown} onClick={() => (isEditing.value = true)}>
            {LABELS.replace} <kbd>e</kbd>
          </button>
        )}
      </div>
      <div class="say">
        <input
          type="text"
          aria-label="A word to the model"
          placeholder="A word to the model: why not, or the answer to give instead"
          value={message}
          onInput={(event) => onMessage(event.currentTarget.value)}
        />
        {entry.choices.includes("respond") && (
          <button type="button" disabled={isBusy || message === ""} onClick={() => onChoice("respond", message)}>{LABELS.respond}</button>
        )}
      </div>
    </footer>
  );
}

/** A field with the command or arguments to run instead. The policy and the sandbox check the replacement again. */
function Edit(props: { editable: EditableText; isBusy: boolean; onDone: (text: string) => void; onLeave: () => void }): JSX.Element {
  const text = useSignal(props.editable.text);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);
  const changed = props.editable.read(text.value);
  return (
    <footer class="edit">
      <textarea
        ref={field}
        rows={Math.min(16, text.value.split("\n").length + 1)}
        spellcheck={false}
        aria-label="What is to run instead"
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      {hasHidden(text.value) && <Exact text={text.value} label="As it would run" isWhole />}
      <div class="decisions">
        <button type="button" class="primary" disabled={props.isBusy || changed === undefined} onClick={() => props.onDone(JSON.stringify(changed))}>Run this instead</button>
        <button type="button" onClick={props.onLeave}>Cancel</button>
      </div>
    </footer>
  );
}

/** Handler of the key `e`: presses the Edit button of the card on the screen. */
export function startEdit(): void {
  document.querySelector<HTMLButtonElement>(".card .d-replace:not(:disabled)")?.click();
}

/** The command, changes or arguments: exactly what would happen. */
export function What({ entry, isWhole }: { entry: Pending; isWhole: boolean }): JSX.Element {
  if (entry.kind === "fileChange") {
    const found = changesOf(entry);
    return (
      <div class="what">
        {found === undefined
          ? (entry.files ?? []).map((file) => <p class="path"><Visible text={file} /></p>)
          : found.map((change) => <Diff change={change} approval={{ isWhole }} />)}
      </div>
    );
  }
  const command = commandText(entry);
  if (command === undefined) {
    const whats = textsOf(entry).filter(({ name }) => name === "");
    return <div class="what">{whats.map(({ text }) => <Exact text={text} label="Arguments" isWhole={isWhole} />)}</div>;
  }
  const argv = Array.isArray(entry.command) ? entry.command : undefined;
  const isScript = argv !== undefined && scriptOf(argv) !== undefined;
  return (
    <div class="what">
      <Exact text={command} label="The command that would run" isWhole={isWhole} />
      {isScript && <p class="as-script">as the script of <code>{plain(shellLine(argv.slice(0, 2)))}</code></p>}
      {hasHidden(command) && <p class="warning">It holds characters that cannot be seen; they are shown by their numbers.</p>}
    </div>
  );
}

/** The placement that the task of an entry works in; unset on the server's own machine. */
export function placeOf(entry: Pending): string | undefined {
  const id = tasks.value.get(entry.taskId)?.placementId;
  const place = id === undefined ? undefined : placements.value.get(id);
  return place === undefined ? undefined : plain(place.name);
}

/** Place, folder, sandbox, digest, and the remaining arguments of an operation. */
function Facts({ entry, isWhole }: { entry: Pending; isWhole: boolean }): JSX.Element {
  // `tty: false` is the usual case and says nothing.
  const rest = textsOf(entry).filter(({ name, text }) => name !== "" && !(name === "tty" && text === "false"));
  const place = placeOf(entry);
  return (
    <dl class="facts">
      {place !== undefined && <div><dt>place</dt><dd>{place}</dd></div>}
      {entry.cwd !== undefined && <div><dt>in</dt><dd><Visible text={entry.cwd} /></dd></div>}
      {entry.isSandboxed !== undefined && (
        <div>
          <dt>sandbox</dt>
          <dd class={entry.isSandboxed ? "" : "hot"}>{entry.isSandboxed ? "inside" : "outside: it may do what the server's user may"}</dd>
        </div>
      )}
      {rest.map(({ name, text }) => (
        <div><dt>{plain(name)}</dt><dd><Exact text={text} label={plain(name)} isWhole={isWhole} /></dd></div>
      ))}
      {entry.digest !== undefined && (
        <div><dt>digest</dt><dd class="digest" title={`A decision names it, and counts for exactly this: ${plain(entry.digest)}`}>{plain(entry.digest)}</dd></div>
      )}
    </dl>
  );
}
