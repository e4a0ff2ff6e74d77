// One item of a turn.

import type { JSX } from "preact";

import type { ThreadItem, TurnPlanStep, UserInput } from "../../protocol";
import { adviceOf } from "../safe/advice";
import { plain } from "../safe/characters";
import { inlineImage } from "../safe/links";
import { changesOf } from "../state/changes";
import { inbox } from "../state/inbox";
import { filePictures, readPicture } from "../state/pictures";
import { mayOperate } from "../state/role";
import { tasks } from "../state/tasks";
import { openThread, type ItemView, type ThreadView } from "../state/thread";
import { age, duration, now, shortId, shortPath } from "./format";
import { Ansi, Code, Diff, Json, Link, Markdown, shownPath, Visible } from "./Text";

/** Limit of pictures that are drawn for one result. */
const MOST_PICTURES = 20;

export function Item({ view, threadId, isRaw }: { view: ItemView; threadId: string; isRaw: boolean }): JSX.Element {
  const item = view.item.value;
  const advice = adviceOf(item, sandboxOf(threadId));
  return (
    <div class={`item i-${item.type}`}>
      {draw(item, view, threadId)}
      {advice !== undefined && <p class="note advice">→ {advice}</p>}
      {isRaw && <div class="raw"><Json value={item} label="item" /></div>}
    </div>
  );
}

function draw(item: ThreadItem, view: ItemView, threadId: string): JSX.Element {
  switch (item.type) {
    case "userMessage":
      return <Message who="You">{item.content.map((part) => <InputPart part={part} />)}</Message>;
    case "agentMessage":
      return (
        <Message who="Agent" isGrowing={!view.isOver}>
          {item.text === "" ? <span class="pulse">…</span> : <Markdown text={withoutColours(item.text)} />}
        </Message>
      );
    case "plan":
      return <Message who="Plan"><Markdown text={item.text} /></Message>;
    case "reasoning":
      return <Reasoning item={item} view={view} />;
    case "commandExecution":
      return <Command item={item} view={view} />;
    case "fileChange":
      return (
        <Tool name="patch" status={isWaiting(item.id) ? "waits" : item.status} summary={`${item.changes.length} ${item.changes.length === 1 ? "file" : "files"}`}>
          {isShownBelow(item.id) ? <p class="below">Shown below, with its decisions.</p> : item.changes.map((change) => <Diff change={change} folder={folderOf(threadId)} />)}
          {item.reason != null && item.reason !== "" && <p class="reason"><Visible text={item.reason} /></p>}
        </Tool>
      );
    case "mcpToolCall":
      return <Call view={view} name={`${item.server}.${item.tool}`} status={item.status} given={item.arguments} result={item.error?.message ?? item.result?.content} ms={item.durationMs} />;
    case "dynamicToolCall":
      return <Call view={view} name={item.tool} status={item.status} given={item.arguments} result={item.contentItems} ms={item.durationMs} />;
    case "collabAgentToolCall":
      return (
        <Tool name={AGENT_CALLS[item.tool] ?? plain(item.tool)} status={item.status} summary={plain(item.prompt ?? "").slice(0, 200)}>
          <p class="agents">
            {item.receiverThreadIds.map((id) => (
              <span><a href={`#/task/${id}`}>Agent {shortId(id)}</a> <span class="inert">{AGENT_STATES[item.agentsStates[id]?.status ?? ""]}</span></span>
            ))}
          </p>
        </Tool>
      );
    case "webSearch":
      return <Tool name="web search" status="completed" summary={plain(item.query)} />;
    case "imageView":
      return <Tool name="picture" status="completed" summary={plain(shownPath(item.path, folderOf(threadId)))}><FilePicture path={item.path} /></Tool>;
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

const AGENT_CALLS: Record<string, string> = {
  spawnAgent: "start an agent", sendInput: "write to an agent", resumeAgent: "open an agent again", wait: "wait for agents", closeAgent: "close an agent",
};
const AGENT_STATES: Record<string, string> = {
  pendingInit: "starting", running: "running", interrupted: "interrupted", completed: "done", errored: "failed", shutdown: "closed", notFound: "not found",
};

function Message({ who, isGrowing, children }: { who: string; isGrowing?: boolean; children: preact.ComponentChildren }): JSX.Element {
  return (
    <div class={`message from-${who.toLowerCase()} ${isGrowing === true ? "growing" : ""}`}>
      <span class="who">{who}</span>
      <div class="body">{children}</div>
    </div>
  );
}

/** The folder that the thread on the screen works in. */
function folderOf(threadId: string): string {
  const view = openThread.peek();
  return view?.id === threadId ? (view.thread.peek()?.cwd ?? "") : "";
}

function placementOf(view: ThreadView | undefined): string | undefined {
  return view === undefined ? undefined : tasks.peek().get(view.rootId())?.placementId;
}

/** The type of the sandbox that the thread on the screen runs under. */
function sandboxOf(threadId: string): string | undefined {
  const view = openThread.value;
  const sandbox = view?.id === threadId ? (view.settings.value["sandbox"] as { type?: string } | undefined) : undefined;
  return sandbox?.type;
}

function InputPart({ part }: { part: UserInput }): JSX.Element {
  switch (part.type) {
    case "text":
      return <Markdown text={part.text} />;
    case "image":
      return <Picture address={part.url} />;
    case "localImage":
      return <FilePicture path={part.path} name={part.path} />;
    default:
      return <p class="inert">{part.type}: <Visible text={part.name} /></p>;
  }
}

function Picture({ address }: { address: string }): JSX.Element {
  const inline = inlineImage(address);
  if (inline !== undefined) return <img class="picture" src={inline} alt="A picture of this message" />;
  return <p class="inert">picture, not loaded: <Link address={address}><Visible text={address.slice(0, 300)} /></Link></p>;
}

/** A picture that is a file where the task works. It is read by a click, because the path comes from a model. */
function FilePicture({ path, name }: { path: string; name?: string }): JSX.Element {
  const picture = filePictures.value.get(path);
  if (picture?.type === "shown") return <div class="pictures"><img class="picture" src={picture.address} alt={`The picture ${plain(path)}`} /></div>;
  return (
    <p class="file-picture">
      {name !== undefined && <span class="path"><Visible text={name} /></span>}
      {!mayOperate() ? <span class="inert">a picture on the server</span> : picture?.type === "problem" ? (
        <span class="inert"><Visible text={picture.text} /></span>
      ) : (
        <button type="button" disabled={picture?.type === "reading"} onClick={() => void readPicture(path, placementOf(openThread.peek()))}>
          {picture?.type === "reading" ? "Reading …" : "Show the picture"}
        </button>
      )}
    </p>
  );
}

/** Pictures in the result of a tool. */
function ResultPictures({ result }: { result: unknown }): JSX.Element | null {
  const found = (Array.isArray(result) ? result.slice(0, MOST_PICTURES) : []).map(addressOfPart).filter((address) => address !== undefined);
  return found.length === 0 ? null : <div class="pictures">{found.map((address) => <Picture address={address} />)}</div>;
}

/** The data address of a picture in a result of an MCP server, or of a client's tool. */
function addressOfPart(part: unknown): string | undefined {
  const { type, data, mimeType, imageUrl } = (part ?? {}) as Record<string, unknown>;
  if (type === "image" && typeof data === "string" && typeof mimeType === "string") return `data:${mimeType};base64,${data}`;
  return type === "inputImage" && typeof imageUrl === "string" ? imageUrl : undefined;
}

/** The result without the data of pictures, which are drawn beside it. */
function withoutPictures(result: unknown): unknown {
  if (!Array.isArray(result)) return result;
  return result.map((part: unknown) => {
    const address = addressOfPart(part);
    return address !== undefined && inlineImage(address) !== undefined ? { type: "image", bytes: address.length } : part;
  });
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

/** The item waits for a decision. On the wire its status is `inProgress`. */
function isWaiting(itemId: string): boolean {
  return inbox.value.some((entry) => entry.itemId === itemId);
}

/** Its changes are already on the page, on the card below. */
function isShownBelow(itemId: string): boolean {
  return inbox.value.some((entry) => entry.itemId === itemId && changesOf(entry) !== undefined);
}

/** Models repeat the colours of output they were shown. In prose they mean nothing. */
function withoutColours(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.includes("\u001b") ? text.replaceAll(/\u001b\[[0-9;:]*m/g, "") : text;
}

/** How long something has run. */
export function Elapsed({ sinceMs }: { sinceMs: number }): JSX.Element {
  return <span class="elapsed">{age(sinceMs, now.value)}</span>;
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
        {isRunning && !isWaiting(item.id) && view.sinceMs !== undefined && <Elapsed sinceMs={view.sinceMs} />}
        <Status status={isWaiting(item.id) ? "waits" : item.exitCode !== null && item.exitCode !== 0 && item.status === "completed" ? "failed" : item.status} note={notes.join(" · ") || undefined} />
      </div>
      {output !== "" && <Ansi text={output} label="Output of the command" isLive={isRunning} />}
      {isRunning && output === "" && !isWaiting(item.id) && <span class="pulse" aria-hidden="true">…</span>}
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
        {props.result !== undefined && props.result !== null && <Json value={withoutPictures(props.result)} label="result" />}
      </Fold>
      <ResultPictures result={props.result} />
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
