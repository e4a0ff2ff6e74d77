// One item of a turn.

import type { JSX } from "preact";

import type { ThreadItem, TurnPlanStep, UserInput } from "../../protocol";
import { plain } from "../safe/characters";
import { inlineImage } from "../safe/links";
import { inbox } from "../state/inbox";
import type { ItemView } from "../state/thread";
import { duration, shortPath } from "./format";
import { Ansi, Code, Diff, Json, Link, Markdown, Visible } from "./Text";

export function Item({ view }: { view: ItemView }): JSX.Element {
  const item = view.item.value;
  return <div class={`item i-${item.type}`}>{draw(item, view)}</div>;
}

function draw(item: ThreadItem, view: ItemView): JSX.Element {
  switch (item.type) {
    case "userMessage":
      return <Message who="You">{item.content.map((part) => <InputPart part={part} />)}</Message>;
    case "agentMessage":
      return <Message who="Agent">{item.text === "" ? <span class="pulse">…</span> : <Markdown text={item.text} />}</Message>;
    case "plan":
      return <Message who="Plan"><Markdown text={item.text} /></Message>;
    case "reasoning":
      return <Reasoning item={item} view={view} />;
    case "commandExecution":
      return <Command item={item} view={view} />;
    case "fileChange":
      return (
        <Tool name="patch" status={isWaiting(item.id) ? "waits" : item.status} summary={`${item.changes.length} ${item.changes.length === 1 ? "file" : "files"}`}>
          {item.changes.map((change) => <Diff change={change} />)}
        </Tool>
      );
    case "mcpToolCall":
      return <Call view={view} name={`${item.server}.${item.tool}`} status={item.status} given={item.arguments} result={item.error?.message ?? item.result?.content} ms={item.durationMs} />;
    case "dynamicToolCall":
      return <Call view={view} name={item.tool} status={item.status} given={item.arguments} result={item.contentItems} ms={item.durationMs} />;
    case "collabAgentToolCall":
      return (
        <Tool name={item.tool} status={item.status} summary={plain(item.prompt ?? "").slice(0, 200)}>
          <p class="agents">
            {item.receiverThreadIds.map((id) => (
              <a href={`#/task/${id}`}>agent {id.slice(-6)} {item.agentsStates[id]?.status ?? ""}</a>
            ))}
          </p>
        </Tool>
      );
    case "webSearch":
      return <Tool name="web search" status="completed" summary={plain(item.query)} />;
    case "imageView":
      return <Tool name="picture" status="completed" summary={plain(item.path)} />;
    case "imageGeneration":
      return <Tool name="picture" status={plain(item.status)} summary={plain(item.revisedPrompt ?? "")}><Picture address={`data:image/png;base64,${item.result}`} /></Tool>;
    case "contextCompaction":
      return <p class="note">The history before this point was replaced by a summary.</p>;
    case "enteredReviewMode":
      return <p class="note">A review began: <Visible text={item.review} /></p>;
    case "exitedReviewMode":
      return <Message who="Review"><Markdown text={item.review} /></Message>;
    case "hookPrompt":
      return <Message who="Hook">{item.fragments.map((fragment) => <Markdown text={fragment.text} />)}</Message>;
    default:
      return <Call view={view} name={plain(item.type)} status="completed" given={item} result={undefined} ms={null} />;
  }
}

function Message({ who, children }: { who: string; children: preact.ComponentChildren }): JSX.Element {
  return (
    <div class={`message from-${who.toLowerCase()}`}>
      <span class="who">{who}</span>
      <div class="body">{children}</div>
    </div>
  );
}

function InputPart({ part }: { part: UserInput }): JSX.Element {
  switch (part.type) {
    case "text":
      return <Markdown text={part.text} />;
    case "image":
      return <Picture address={part.url} />;
    case "localImage":
      return <p class="inert">picture on the server: <Visible text={part.path} /></p>;
    default:
      return <p class="inert">{part.type}: <Visible text={part.name} /></p>;
  }
}

function Picture({ address }: { address: string }): JSX.Element {
  const inline = inlineImage(address);
  if (inline !== undefined) return <img class="picture" src={inline} alt="A picture of this message" />;
  return <p class="inert">picture, not loaded: <Link address={address}><Visible text={address.slice(0, 300)} /></Link></p>;
}

function Reasoning({ item, view }: { item: ThreadItem & { type: "reasoning" }; view: ItemView }): JSX.Element {
  const text = [...item.summary, ...item.content].join("\n\n");
  return (
    <Fold view={view} class="reasoning" summary={<><span class="tool-name">reasoning</span> <span class="line">{plain(text.replaceAll("*", "")).slice(0, 160)}</span></>}>
      <Markdown text={text} />
    </Fold>
  );
}

function Fold(props: { view: ItemView; class: string; summary: JSX.Element; children: preact.ComponentChildren }): JSX.Element {
  const isOpen = props.view.isOpen.value;
  return (
    <details class={props.class} open={isOpen} onToggle={(event) => (props.view.isOpen.value = event.currentTarget.open)}>
      <summary>{props.summary}</summary>
      {isOpen && props.children}
    </details>
  );
}

/** It is shown as running on the wire, and waits for a person. */
function isWaiting(itemId: string): boolean {
  return inbox.value.some((entry) => entry.itemId === itemId);
}

const WORDS: Record<string, string> = { inProgress: "running", completed: "done", failed: "failed", declined: "declined" };

function Status({ status, note }: { status: string; note?: string | undefined }): JSX.Element {
  return <span class={`status st-${status}`}>{WORDS[status] ?? status}{note !== undefined && ` · ${note}`}</span>;
}

function Command({ item, view }: { item: ThreadItem & { type: "commandExecution" }; view: ItemView }): JSX.Element {
  // The command without the shell around it; the whole line is in the fold.
  const words = item.commandActions.map((action) => action.command).join(" && ");
  const shown = words === "" ? item.command : words;
  const isRunning = item.status === "inProgress";
  const notes = [
    item.exitCode !== null && item.exitCode !== 0 ? `exit ${item.exitCode}` : undefined,
    item.durationMs === null ? undefined : duration(item.durationMs),
  ].filter((note) => note !== undefined);
  const output = item.aggregatedOutput ?? "";
  return (
    <div class="tool command">
      <div class="tool-head">
        <span class="prompt" aria-hidden="true">$</span>
        <code class="cmd"><Visible text={shown.slice(0, 4_000)} /></code>
        <Status status={isWaiting(item.id) ? "waits" : item.exitCode !== null && item.exitCode !== 0 && item.status === "completed" ? "failed" : item.status} note={notes.join(" · ") || undefined} />
      </div>
      {output !== "" && <Ansi text={output} label="Output of the command" />}
      {isRunning && output === "" && <span class="pulse" aria-hidden="true">…</span>}
      <Fold view={view} class="details" summary={<span class="line">in {plain(shortPath(item.cwd))}</span>}>
        <Code text={item.command} />
        <p class="path"><Visible text={item.cwd} /></p>
      </Fold>
    </div>
  );
}

function Tool(props: { name: string; status: string; summary: string; children?: preact.ComponentChildren }): JSX.Element {
  return (
    <div class="tool">
      <div class="tool-head">
        <span class="tool-name">{props.name}</span>
        <span class="line">{props.summary}</span>
        <Status status={props.status} />
      </div>
      {props.children}
    </div>
  );
}

function Call(props: { view: ItemView; name: string; status: string; given: unknown; result: unknown; ms: number | null }): JSX.Element {
  const line = plain(JSON.stringify(props.given) ?? "").slice(0, 160);
  return (
    <div class="tool">
      <div class="tool-head">
        <span class="tool-name">{plain(props.name)}</span>
        <span class="line">{line}</span>
        <Status status={props.status} note={props.ms === null ? undefined : duration(props.ms)} />
      </div>
      <Fold view={props.view} class="details" summary={<span class="line">arguments and result</span>}>
        <Json value={props.given} label="arguments" />
        {props.result !== undefined && props.result !== null && <Json value={props.result} label="result" />}
      </Fold>
    </div>
  );
}

export function Plan({ steps }: { steps: TurnPlanStep[] }): JSX.Element {
  const done = steps.filter((step) => step.status === "completed").length;
  return (
    <div class="item i-plan-steps">
      <div class="tool plan">
        <div class="tool-head"><span class="tool-name">plan</span><span class="line">{done} of {steps.length} done</span></div>
        <ol>
          {steps.map((step) => (
            <li class={step.status}>
              <span class="box" aria-hidden="true">{step.status === "completed" ? "✓" : step.status === "inProgress" ? "▸" : "·"}</span>
              <Visible text={step.step} />
              <span class="sr-only"> ({step.status})</span>
            </li>
          ))}
        </ol>
      </div>
    </div>
  );
}
