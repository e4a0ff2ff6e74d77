import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { plain } from "../safe/characters";
import { say } from "../state/announce";
import { loadChanges } from "../state/changes";
import { useChosen } from "../state/chosen";
import { decide, deciding, inbox, type Choice, type Pending } from "../state/inbox";
import { useKeys } from "../state/keys";
import { mayDecide } from "../state/role";
import { go } from "../state/route";
import { isShown } from "../state/shown";
import { tasks } from "../state/tasks";
import { Dialog } from "./Dialog";
import { age, now } from "./format";
import { kindName, PendingCard, placeOf, startEdit, summaryOf, What } from "./PendingCard";
import { Visible } from "./Text";
import { Virtual } from "./Virtual";

export async function decideAndSay(entry: Pending, choice: Choice, text = ""): Promise<void> {
  const problem = await decide(entry, choice, text);
  if (problem !== undefined) say(problem, true);
}

export function InboxPage(): JSX.Element {
  const marked = useSignal<ReadonlySet<string>>(new Set());
  const whole = useSignal<ReadonlySet<string>>(new Set());
  const entries = inbox.value;
  const { entry, at: chosen, isFresh, choose: show } = useChosen(entries);
  useEffect(() => {
    if (entry?.kind === "fileChange") void loadChanges(entry).catch((error: Error) => say(error.message, true));
  }, [entry?.key]);

  const choose = (choice: Choice, text = "") => {
    if (entry === undefined || isFresh || !mayDecide() || !entry.choices.includes(choice) || deciding.peek().has(entry.key)) return;
    const isYes = choice === "approve" || choice === "approveForSession" || choice === "replace" || choice === "retry";
    if (isYes && !isShown(entry, whole.peek())) {
      say("Show all of it first: what is not on the screen is not approved.", true);
      return;
    }
    void decideAndSay(entry, choice, text);
  };
  useKeys({
    j: () => show(chosen + 1),
    k: () => show(chosen - 1),
    ArrowDown: () => show(chosen + 1),
    ArrowUp: () => show(chosen - 1),
    a: () => choose(entry?.isUnknown === true ? "retry" : "approve"),
    s: () => choose("approveForSession"),
    d: () => choose("reject"),
    e: startEdit,
    o: () => entry !== undefined && go(`/task/${entry.taskId}`),
    x: () => entry !== undefined && mayDecide() && toggle(entry.key),
  });
  const toggle = (key: string) => {
    const next = new Set(marked.peek());
    if (!next.delete(key)) next.add(key);
    marked.value = next;
  };
  const many = entries.filter((one) => marked.value.has(one.key));
  return (
    <section class="page inbox">
      <header class="bar">
        <h1>Inbox</h1>
        <span class="count">{entries.length === 0 ? "nothing waits" : `${entries.length} ${entries.length === 1 ? "waits" : "wait"} for a decision`}</span>
        {many.length > 0 && <Bulk entries={many} whole={whole.value} onDone={() => (marked.value = new Set())} />}
      </header>
      {entry === undefined ? (
        <div class="all-clear">
          <p class="big">All clear</p>
          <p>Commands, patches and questions that need a person appear here, whichever task they come from.</p>
        </div>
      ) : (
        <div class="split">
          <Virtual
            rows={entries}
            keyOf={(one) => one.key}
            estimate={62}
            role="list"
            label="What waits"
            class="queue"
            focus={chosen}
            draw={(one, index) => (
              <QueueLine
                entry={one}
                isChosen={index === chosen}
                isMarked={marked.value.has(one.key)}
                onMark={() => toggle(one.key)}
                onChoose={() => show(index)}
              />
            )}
          />
          <PendingCard
            key={entry.key}
            entry={entry}
            isShown={isShown(entry, whole.value)}
            isWhole={whole.value.has(entry.key)}
            isFresh={isFresh}
            onWhole={() => (whole.value = new Set(whole.peek()).add(entry.key))}
            onChoice={choose}
          />
        </div>
      )}
    </section>
  );
}

function QueueLine(props: { entry: Pending; isChosen: boolean; isMarked: boolean; onMark: () => void; onChoose: () => void }): JSX.Element {
  const { entry } = props;
  const title = tasks.value.get(entry.taskId)?.title ?? "";
  return (
    <div class={`queue-line ${props.isChosen ? "chosen" : ""}`}>
      {mayDecide() && <input type="checkbox" aria-label="Select" checked={props.isMarked} onChange={props.onMark} />}
      <button type="button" class="queue-open" aria-current={props.isChosen ? "true" : undefined} onClick={props.onChoose}>
        <span class="top">
          <span class={`kind k-${plain(entry.kind)}`}>{entry.isUnknown ? "outcome unknown" : kindName(entry.kind)}</span>
          <span class="since">{age(entry.sinceMs, now.value)}</span>
        </span>
        <span class="what">{summaryOf(entry)}</span>
        <span class="from">{plain(title).slice(0, 120)}</span>
      </button>
    </div>
  );
}

/** Decisions about many ask twice, and the second time show all that they are about. */
function Bulk({ entries, whole, onDone }: { entries: Pending[]; whole: ReadonlySet<string>; onDone: () => void }): JSX.Element {
  // The entries as they are when the dialog opens: each decision names the digest of what is shown in it.
  const asked = useSignal<{ choice: "approve" | "reject"; able: Pending[] } | undefined>(undefined);
  const ask = (choice: "approve" | "reject") => {
    const able = entries.filter((entry) => entry.choices.includes(choice) && (choice !== "approve" || isShown(entry, whole)));
    asked.value = { choice, able };
  };
  const carryOut = async (choice: Choice, able: Pending[]) => {
    asked.value = undefined;
    for (const entry of able) await decideAndSay(entry, choice);
  };
  return (
    <span class="bulk">
      {entries.length} selected
      <button type="button" onClick={() => ask("approve")}>Approve …</button>
      <button type="button" onClick={() => ask("reject")}>Decline …</button>
      <button type="button" class="quiet" onClick={onDone}>Clear</button>
      {asked.value !== undefined && (
        <SureAboutMany {...asked.value} of={entries.length} onClose={() => (asked.value = undefined)} onYes={carryOut} />
      )}
    </span>
  );
}

interface SureProps {
  choice: "approve" | "reject";
  /** The entries that take this decision. */
  able: Pending[];
  /** The number of selected entries. */
  of: number;
  onClose: () => void;
  onYes: (choice: Choice, able: Pending[]) => Promise<void>;
}

function SureAboutMany({ choice, able, of, onClose, onYes }: SureProps): JSX.Element {
  const word = choice === "approve" ? "Approve" : "Decline";
  return (
    <Dialog title={able.length === of ? `${word} these ${of}?` : `${word} ${able.length} of the ${of} selected?`} class="wide-dialog many" onClose={onClose}>
      {able.length < of && <p class="hint">The others take no such decision, or are too long to be approved unseen. They stay selected.</p>}
      <ol>
        {able.map((entry) => (
          <li>
            <p class="from">
              <span class={`kind k-${plain(entry.kind)}`}>{kindName(entry.kind)}</span> {plain(tasks.value.get(entry.taskId)?.title ?? "").slice(0, 160)}
              {placeOf(entry) !== undefined && ` at ${placeOf(entry)}`}
              {entry.cwd !== undefined && <> in <code><Visible text={entry.cwd} /></code></>}
              {entry.isSandboxed === false && <b class="hot"> outside the sandbox</b>}
            </p>
            <What entry={entry} isWhole />
          </li>
        ))}
      </ol>
      <div class="dialog-end">
        <button type="button" data-first onClick={onClose}>No</button>
        <button type="button" class={choice === "approve" ? "primary" : "danger"} disabled={able.length === 0} onClick={() => void onYes(choice, able)}>
          Yes, {word.toLowerCase()} {able.length}
        </button>
      </div>
    </Dialog>
  );
}
