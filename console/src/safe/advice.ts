// Advice beside an item that the policy refused or the sandbox stopped: the setting that would have allowed it.

import type { ThreadItem } from "../../protocol";

const WALLS = /Read-only file system|Permission denied|Operation not permitted/;
const NO_NETWORK = /Could not resolve host|Temporary failure in name resolution|Network is unreachable/;
/** Refusals by the policy. A person who declined needs no advice. */
const NOBODY_ASKED = /nobody can be asked|you cannot ask/;

/** Unset when no setting would have helped. `sandbox` is the type of the policy that the task runs under. */
export function adviceOf(item: ThreadItem, sandbox: string | undefined): string | undefined {
  const isEdit = item.type === "fileChange";
  if (!isEdit && item.type !== "commandExecution") return undefined;
  const said = (isEdit ? item.reason : item.aggregatedOutput) ?? "";
  const isReadOnly = sandbox === "readOnly";
  if (item.status === "declined" && NOBODY_ASKED.test(said)) {
    return isEdit && isReadOnly
      ? "The sandbox of this task is read-only, and it asks nobody. A new task with workspace-write may change files."
      : "This task asks nobody. A new one that asks “on-request” puts such a thing into the inbox.";
  }
  if (isEdit || item.status !== "failed" || !(isReadOnly || sandbox === "workspaceWrite")) return undefined;
  if (NO_NETWORK.test(said)) return "Commands of this task have no network: sandbox_workspace_write.network_access = true gives them one.";
  if (!WALLS.test(said)) return undefined;
  return isReadOnly
    ? "The sandbox of this task is read-only. A new task with workspace-write may write to its folder."
    : "Commands of this task may write to its folder alone. A new one that asks “on-request” can be let out for a command.";
}
