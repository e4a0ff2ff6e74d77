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

/** A state as a word and a shape, so that it can be read without telling colours apart. */
export function State({ state }: { state: TaskStatus }): JSX.Element {
  return (
    <span class={`state s-${state}`}>
      <span class="dot" />
      {WORDS[state]}
    </span>
  );
}
