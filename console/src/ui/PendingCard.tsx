// One thing that waits: what exactly would happen, where, why, and the decisions there are.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";

import { hasHidden, plain } from "../safe/characters";
import { changes } from "../state/changes";
import { deciding, type Choice, type Pending } from "../state/inbox";
import { route } from "../state/route";
import { tasks } from "../state/tasks";
import { age, moment, now, shortId } from "./format";
import { Questions } from "./Questions";
import { Diff, Exact, Visible } from "./Text";

/** As a shell would be given it: words with anything special in quotes. */
export function shellLine(words: string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(" ");
}

/** The script of `sh -c SCRIPT`, which is what people look for. */
function scriptOf(command: string[]): string | undefined {
  const [program, flag, script] = command;
  const isShell = /(^|\/)(ba|z|da|k)?sh$/.test(program ?? "");
  return command.length === 3 && isShell && /^-[a-z]*c$/.test(flag ?? "") ? script : undefined;
}

function commandText(entry: Pending): string | undefined {
  if (entry.command === undefined) return undefined;
  return typeof entry.command === "string" ? entry.command : (scriptOf(entry.command) ?? shellLine(entry.command));
}

const KINDS: Record<string, string> = {
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

const LABELS: Record<Choice, string> = {
  approve: "Approve",
  approveForSession: "Approve for session",
  retry: "Run again",
  reject: "Decline",
  rejectAndStop: "Decline and stop the turn",
  respond: "Answer instead",
};
const KEYS: Partial<Record<Choice, string>> = { approve: "a", retry: "a", approveForSession: "s", reject: "d" };
const ORDER: Choice[] = ["approve", "retry", "approveForSession", "reject", "rejectAndStop"];

interface CardProps {
  entry: Pending;
  /** Everything is on the screen. */
  isShown: boolean;
  /** Also what is long. */
  isWhole: boolean;
  onWhole: () => void;
  onChoice: (choice: Choice, text?: string) => void;
}

export function PendingCard({ entry, isShown, isWhole, onWhole, onChoice }: CardProps): JSX.Element {
  const task = tasks.value.get(entry.taskId);
  const message = useSignal("");
  const isBusy = deciding.value.has(entry.key);
  return (
    <article class="card" aria-label={`${kindName(entry.kind)}: ${summaryOf(entry)}`}>
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
      {entry.reason !== undefined && <p class="reason"><Visible text={entry.reason} /></p>}
      <What entry={entry} isWhole={isWhole} />
      <Facts entry={entry} isWhole={isWhole} />
      {route.value.page === "inbox" && (
        <p class="from">
          From <a href={`#/task/${entry.taskId}`}>{plain(task?.title ?? "").slice(0, 160) || `task ${shortId(entry.taskId)}`}</a>
        </p>
      )}
      {entry.agentPath.length > 1 && <p class="from">Asked by {plain(entry.agentPath.join(" › "))}</p>}
      {!isShown &&
        (entry.kind === "fileChange" && changes.value.get(entry.itemId) === undefined ? (
          <p class="warning">The changes are being read. They can be approved once they are shown.</p>
        ) : (
          <p class="warning">
            It is long, and not all of it is shown. <button type="button" onClick={onWhole}>Show all of it</button>
          </p>
        ))}
      {entry.questions !== undefined ? (
        <Questions questions={entry.questions} isBusy={isBusy} onAnswer={(text) => onChoice("respond", text)} />
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
  const isYes = (choice: Choice) => choice === "approve" || choice === "approveForSession" || choice === "retry";
  return (
    <footer>
      <div class="decisions">
        {ORDER.filter((choice) => entry.choices.includes(choice)).map((choice) => (
          <button
            type="button"
            class={choice === "approve" || choice === "retry" ? "primary" : isYes(choice) ? "" : "danger"}
            disabled={isBusy || (isYes(choice) && !isShown)}
            onClick={() => onChoice(choice, isYes(choice) ? "" : message)}
          >
            {LABELS[choice]} {KEYS[choice] !== undefined && <kbd>{KEYS[choice]}</kbd>}
          </button>
        ))}
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

function What({ entry, isWhole }: { entry: Pending; isWhole: boolean }): JSX.Element {
  if (entry.kind === "fileChange") {
    const found = changes.value.get(entry.itemId);
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
    if (entry.questions !== undefined) return <></>;
    const text = JSON.stringify(entry.arguments, null, 2) ?? "null";
    return <div class="what"><Exact text={text} label="Arguments" isWhole={isWhole} /></div>;
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

const SHOWN = new Set(["command", "cwd", "sandboxed", "files", "questions"]);

/** Where and how, and whatever else the arguments hold. */
function Facts({ entry, isWhole }: { entry: Pending; isWhole: boolean }): JSX.Element {
  const given = typeof entry.arguments === "object" && entry.arguments !== null ? Object.entries(entry.arguments) : [];
  const rest = entry.command === undefined && entry.files === undefined ? [] : given.filter(([key]) => !SHOWN.has(key));
  return (
    <dl class="facts">
      {entry.cwd !== undefined && <div><dt>in</dt><dd><Visible text={entry.cwd} /></dd></div>}
      {entry.isSandboxed !== undefined && (
        <div>
          <dt>sandbox</dt>
          <dd class={entry.isSandboxed ? "" : "hot"}>{entry.isSandboxed ? "inside" : "outside: it may do what the server's user may"}</dd>
        </div>
      )}
      {entry.source.type === "operation" && rest.map(([key, value]) => (
        <div><dt>{plain(key)}</dt><dd><Exact text={JSON.stringify(value) ?? ""} label={plain(key)} isWhole={isWhole} /></dd></div>
      ))}
      {entry.digest !== undefined && <div><dt>digest</dt><dd class="digest" title={plain(entry.digest)}>{plain(entry.digest)}</dd></div>}
    </dl>
  );
}
