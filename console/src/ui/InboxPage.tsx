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
import { age, now } from "./format";
import { kindName, PendingCard, startEdit, summaryOf } from "./PendingCard";
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

/** Decisions about many ask twice. */
function Bulk({ entries, whole, onDone }: { entries: Pending[]; whole: ReadonlySet<string>; onDone: () => void }): JSX.Element {
  const asked = useSignal<Choice | undefined>(undefined);
  const able = (choice: Choice) =>
    entries.filter((entry) => entry.choices.includes(choice) && (choice !== "approve" || isShown(entry, whole)));
  const carryOut = async () => {
    const choice = asked.peek();
    asked.value = undefined;
    if (choice === undefined) return;
    for (const entry of able(choice)) await decideAndSay(entry, choice);
    onDone();
  };
  if (asked.value !== undefined) {
    const word = asked.value === "approve" ? "Approve" : "Decline";
    return (
      <span class="bulk sure" role="group" aria-label="Are you sure">
        {word} {able(asked.value).length} of {entries.length} selected?
        <button type="button" class={asked.value === "approve" ? "primary" : "danger"} onClick={() => void carryOut()}>
          Yes, {word.toLowerCase()} {able(asked.value).length}
        </button>
        <button type="button" onClick={() => (asked.value = undefined)}>No</button>
      </span>
    );
  }
  return (
    <span class="bulk">
      {entries.length} selected
      <button type="button" onClick={() => (asked.value = "approve")}>Approve …</button>
      <button type="button" onClick={() => (asked.value = "reject")}>Decline …</button>
      <button type="button" class="quiet" onClick={onDone}>Clear</button>
    </span>
  );
}
