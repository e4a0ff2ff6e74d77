// The next request of a task to its model, piece by piece: the same that `oarlock debug prompt` prints.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import type { PromptPiece, ThreadPromptReadResponse } from "../../protocol";
import { plain } from "../safe/characters";
import type { ThreadView } from "../state/thread";
import { connection } from "../wire/connection";
import { count } from "./format";
import { Code, Visible } from "./Text";

/** As many pieces of the history as a server gives at once. */
const ALL_PIECES = 1_000;

/** The provider of a task whose requests the host carries. */
const OF_HOST = "host";

type Chapter = keyof ThreadPromptReadResponse["pieces"];

const CHAPTERS: [Chapter, string, string][] = [
  ["instructions", "Instructions", "What the model is, and how it is to work. They are the same in every request."],
  ["tools", "Tools", "The tools that it may call."],
  ["history", "History", "What was said and done so far."],
  ["next", "Told next", "What it is told of its surroundings before your next words."],
];

export function PromptPage({ view }: { view: ThreadView }): JSX.Element {
  const id = view.id;
  const found = useSignal<ThreadPromptReadResponse | undefined>(undefined);
  const problem = useSignal<string | undefined>(undefined);
  const limit = useSignal<number | undefined>(undefined);
  const isStarting = useSignal(false);
  const status = view.thread.value?.status.type;
  const hasProcess = status !== undefined && (!connection.isHost || status !== "notLoaded");
  const isReady = connection.state.value.type === "ready";
  const read = async () => {
    try {
      const historyLimit = limit.peek();
      found.value = await connection.request("thread/prompt/read", { threadId: id, ...(historyLimit === undefined ? {} : { historyLimit }) });
      problem.value = undefined;
    } catch (error) {
      problem.value = error instanceof Error ? error.message : String(error);
    }
  };
  // The beginning and the end of a turn change the next request.
  useEffect(() => {
    if (isReady && hasProcess) void read();
  }, [id, isReady, hasProcess, view.runningTurn.value, limit.value]);
  const start = async () => {
    isStarting.value = true;
    await read();
    isStarting.value = false;
  };
  if (found.value === undefined && problem.value === undefined && ((status !== undefined && !hasProcess) || isStarting.value)) {
    return <NoProcess isStarting={isStarting.value} onStart={() => void start()} />;
  }
  if (found.value === undefined) {
    return problem.value === undefined ? (
      <p class="empty grow">Reading the next request …</p>
    ) : (
      <div class="all-clear grow" role="alert">
        <p class="big bad">The next request cannot be read</p>
        <p><Visible text={problem.value} /></p>
        <p class="ways"><button type="button" onClick={() => void start()}>Try again</button></p>
      </div>
    );
  }
  return (
    <>
      {problem.value !== undefined && <p class="problem"><Visible text={problem.value} /></p>}
      <Prompt prompt={found.value} onAgain={() => void read()} onAll={() => (limit.value = ALL_PIECES)} isAll={limit.value === ALL_PIECES} />
    </>
  );
}

/** Only a process of the task knows its instructions, tools and surroundings. Starting one costs memory, so it takes a click. */
function NoProcess({ isStarting, onStart }: { isStarting: boolean; onStart: () => void }): JSX.Element {
  return (
    <div class="all-clear grow">
      <p class="big plain">No process works for this task</p>
      <p>A process knows the instructions, the tools and the surroundings. It ends by itself after a while without work.</p>
      <p class="ways">
        <button type="button" class="primary" disabled={isStarting} onClick={onStart}>{isStarting ? "Starting one …" : "Start one and look"}</button>
      </p>
    </div>
  );
}

function tokensOf(pieces: readonly PromptPiece[]): number {
  return pieces.reduce((sum, piece) => sum + piece.tokens, 0);
}

function Prompt(props: { prompt: ThreadPromptReadResponse; isAll: boolean; onAgain: () => void; onAll: () => void }): JSX.Element {
  const { prompt } = props;
  const { pieces } = prompt;
  const of = (chapter: Chapter) => tokensOf(pieces[chapter]);
  // Includes the history that the answer leaves out.
  const history = prompt.tokens - of("instructions") - of("tools") - of("next");
  const sums: [Chapter, string, number][] = CHAPTERS.map(([chapter, name]) => [chapter, name, chapter === "history" ? history : of(chapter)]);
  const room = Math.max(prompt.contextWindow ?? 0, prompt.tokens, 1);
  const share = prompt.contextWindow === null ? "" : ` of ${count(prompt.contextWindow)} (${Math.round((100 * prompt.tokens) / Math.max(1, prompt.contextWindow))} %)`;
  return (
    <div class="prompt-page scroll" tabIndex={0} role="group" aria-label="The next request to the model">
      <header>
        <p class="lead">
          <span><b>About {count(prompt.tokens)} tokens</b>{share} go to {plain(prompt.model)}{prompt.modelProvider !== OF_HOST && ` at ${plain(prompt.modelProvider)}`} with your next words.</span>
          <button type="button" class="quiet" onClick={props.onAgain}>Read again</button>
        </p>
        <div class="share" role="img" aria-label={sums.map(([, name, tokens]) => `${name}: about ${tokens} tokens`).join(", ")}>
          {sums.map(([chapter, , tokens]) => tokens > 0 && <span class={`share-${chapter}`} style={{ width: `${(100 * tokens) / room}%` }} />)}
        </div>
        <ul class="share-key">
          {sums.map(([chapter, name, tokens]) => tokens > 0 && <li><span class={`share-${chapter}`} aria-hidden="true" />{name} <b>{count(tokens)}</b></li>)}
        </ul>
      </header>
      {CHAPTERS.map(([chapter, name, about]) => (
        <section>
          <h2>{name}</h2>
          <p class="hint">{about}</p>
          {chapter === "history" && prompt.omittedHistory > 0 && (
            <p class="hint">
              {prompt.omittedHistory} earlier pieces are not shown.
              {!props.isAll && <button type="button" class="clip" onClick={props.onAll}>Show more of them</button>}
            </p>
          )}
          {pieces[chapter].length === 0 ? <p class="nil">Nothing.</p> : pieces[chapter].map((piece) => <Piece piece={piece} />)}
        </section>
      ))}
    </div>
  );
}

function Piece({ piece }: { piece: PromptPiece }): JSX.Element {
  const isOpen = useSignal(false);
  return (
    <details class="piece" open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        <span class={`role role-${plain(piece.role)}`}>{plain(piece.role)}</span>
        <span class="piece-name">{plain(piece.name)}</span>
        <span class="line">{plain(piece.text.slice(0, 200))}</span>
        <span class="size">{count(piece.tokens)}</span>
      </summary>
      {isOpen.value && (
        <>
          <Code text={piece.text} language="markdown" />
          {piece.text.length < piece.bytes && new TextEncoder().encode(piece.text).length < piece.bytes && <p class="hint">Only its beginning is shown.</p>}
        </>
      )}
    </details>
  );
}
