import type { JSX } from "preact";

import type { TaskStatus } from "../../protocol";

const WORDS: Record<TaskStatus, string> = {
  creating: "creating",
  queued: "queued",
  idle: "idle",
  running: "running",
  waiting: "waiting",
  waitingForCarrier: "waiting for its model",
  suspended: "suspended",
  failed: "failed",
};

/** A word and a shape: nobody has to tell colours apart. */
export function State({ state }: { state: TaskStatus }): JSX.Element {
  return (
    <span class={`state s-${state}`}>
      <span class="dot" />
      {WORDS[state]}
    </span>
  );
}
