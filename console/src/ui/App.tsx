import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { plain } from "../safe/characters";
import { announcement, toast } from "../state/announce";
import { switchDiffs } from "../state/diffs";
import { inbox } from "../state/inbox";
import { useKeys } from "../state/keys";
import { mayOperate, roleName } from "../state/role";
import { go, route } from "../state/route";
import { sortedTasks } from "../state/tasks";
import { follow } from "../state/thread";
import { connection } from "../wire/connection";
import { now } from "./format";
import { Help } from "./Help";
import { HostPage } from "./HostPage";
import { InboxPage } from "./InboxPage";
import { NewTask } from "./NewTask";
import { SignIn } from "./SignIn";
import { TaskPage } from "./TaskPage";
import { TasksPage } from "./TasksPage";

export function App(): JSX.Element {
  const [isHelpOpen, setHelpOpen] = useState(false);
  const here = route.value;
  const main = useRef<HTMLElement>(null);
  useKeys({
    "?": () => setHelpOpen(true),
    t: () => go("/tasks"),
    i: () => go("/inbox"),
    ...(mayOperate() ? { n: () => go("/new") } : {}),
    h: () => go("/host"),
    v: switchDiffs,
  });
  const openId = here.page === "task" ? here.id : undefined;
  useEffect(() => follow(openId), [openId]);
  useEffect(() => {
    const waiting = inbox.value.length;
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}Oarlock console`;
  }, [inbox.value.length]);
  if (connection.state.value.type === "refused") return <SignIn />;
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
        Skip to the content
      </a>
      <Rail onHelp={() => setHelpOpen(true)} />
      <main id="main" ref={main} tabIndex={-1}>
        <LinkBanner />
        {here.page === "tasks" && <TasksPage />}
        {here.page === "task" && <TaskPage key={here.id} id={here.id} shown={mayOperate() ? here.view : "conversation"} />}
        {here.page === "inbox" && <InboxPage />}
        {here.page === "new" && (mayOperate() ? <NewTask /> : <p class="empty">This token starts no tasks.</p>)}
        {here.page === "host" && <HostPage />}
      </main>
      {isHelpOpen && <Help onClose={() => setHelpOpen(false)} />}
      {toast.value !== undefined && <div class={`toast ${toast.value.isProblem ? "problem" : ""}`}>{plain(toast.value.text)}</div>}
      <div class="sr-only" role="status" aria-live="polite">{announcement.value}</div>
    </div>
  );
}

function Rail({ onHelp }: { onHelp: () => void }): JSX.Element {
  const here = route.value.page;
  const waiting = inbox.value.length;
  const running = sortedTasks.value.filter((task) => task.state === "running").length;
  const entry = (page: string, hash: string, key: string, badge?: JSX.Element) => (
    <a href={`#${hash}`} aria-current={here === page.toLowerCase() || (page === "Tasks" && here === "task") ? "page" : undefined}>
      <span class="name">{page === "New" ? "New task" : page}</span>
      {badge}
      <kbd aria-hidden="true">{key}</kbd>
    </a>
  );
  const isReady = connection.state.value.type === "ready";
  return (
    <nav class="rail" aria-label="Pages">
      <div class="brand">
        <Mark />
        <span>Oarlock</span>
      </div>
      {entry("Tasks", "/tasks", "t", running > 0 ? <span class="badge running" title="running">{running}</span> : undefined)}
      {entry("Inbox", "/inbox", "i", waiting > 0 ? <span class="badge waiting" title="waiting for a decision">{waiting}</span> : undefined)}
      {mayOperate() && entry("New", "/new", "n")}
      {entry("Host", "/host", "h")}
      <div class="rail-end">
        <button type="button" class="quiet" onClick={onHelp}>Keys <kbd>?</kbd></button>
        <span class={`link ${isReady ? "ok" : "lost"}`}>
          <span class="dot" />
          {isReady ? (connection.isHost ? "host" : "app-server") : "offline"}
          {isReady && !mayOperate() && ` · ${roleName()}`}
        </span>
      </div>
    </nav>
  );
}

function Mark(): JSX.Element {
  return (
    <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="var(--accent)" />
      <path d="M9 8v7a7 7 0 0 0 14 0V8M16 22v4" stroke="var(--accent-ink)" stroke-width="3" fill="none" stroke-linecap="round" />
    </svg>
  );
}

function LinkBanner(): JSX.Element | null {
  const state = connection.state.value;
  if (state.type === "ready" || (state.type === "connecting" && state.attempt === 0)) return null;
  const seconds = state.type === "waiting" ? Math.max(0, Math.ceil((state.untilMs - now.value) / 1_000)) : 0;
  return (
    <div class="banner" role="alert">
      <span class="dot" />
      {state.type === "waiting" ? `The connection is lost. Trying again in ${seconds} s.` : "The connection is lost. Trying again."} What
      you see may be old; nothing is lost on the server.
      <button type="button" onClick={() => connection.reconnectNow()}>Try now</button>
    </div>
  );
}
