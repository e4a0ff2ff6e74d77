// The texts of an operation that are drawn for approval. The card and the check before an approval use the same list, so nothing
// can be approved that was cut.

import { changesOf } from "./changes";
import type { Pending } from "./inbox";
import { rowsOf } from "../safe/diff";
import type { FileUpdateChange } from "../../protocol";

/** Characters of an approval that are shown at once. One that is longer cannot be approved before all of it was shown. */
export const APPROVAL_LIMIT = 20_000;
export const DIFF_ROWS = 400;

export interface ShownText {
  /** The name of an argument; empty for the main text, such as the command. */
  name: string;
  text: string;
}

/** As a shell would be given it: words with anything special in quotes. */
export function shellLine(words: string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(" ");
}

/** The script of `sh -c SCRIPT`, which is what people look for. */
export function scriptOf(command: string[]): string | undefined {
  const [program, flag, script] = command;
  const isShell = /(^|\/)(ba|z|da|k)?sh$/.test(program ?? "");
  return command.length === 3 && isShell && /^-[a-z]*c$/.test(flag ?? "") ? script : undefined;
}

export function commandText(entry: Pending): string | undefined {
  if (entry.command === undefined) return undefined;
  return typeof entry.command === "string" ? entry.command : (scriptOf(entry.command) ?? shellLine(entry.command));
}

/** The command or arguments that may be changed before they run, and how a changed text is read: undefined when it is not valid. */
export interface EditableText {
  text: string;
  read: (text: string) => object | undefined;
}

export function editableOf(entry: Pending): EditableText | undefined {
  if (!entry.choices.includes("replace")) return undefined;
  const command = Array.isArray(entry.command) ? entry.command : undefined;
  const script = command === undefined ? undefined : scriptOf(command);
  if (command !== undefined && script !== undefined) {
    return { text: script, read: (text) => (text.trim() === "" ? undefined : { command: [...command.slice(0, 2), text] }) };
  }
  const read = (text: string): object | undefined => {
    try {
      const value: unknown = JSON.parse(text);
      if (command === undefined) return { arguments: value };
      const isCommand = Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string");
      return isCommand ? { command: value } : undefined;
    } catch {
      return undefined;
    }
  };
  return { text: JSON.stringify(command ?? entry.arguments, null, 2) ?? "null", read };
}

/** Arguments that the card draws elsewhere. */
const DRAWN = new Set(["command", "commandActions", "cwd", "sandboxed", "files", "questions"]);
/** Fields of a question on the wire that are not part of what would happen. */
const ENVELOPE = new Set([
  "threadId", "turnId", "itemId", "startedAtMs", "approvalId", "reason", "commandActions", "availableDecisions", "operationId",
  "argumentsDigest", "proposedExecpolicyAmendment", "proposedNetworkPolicyAmendments", "skillMetadata",
]);

function isLongDiff(change: FileUpdateChange): boolean {
  return rowsOf(change).length > DIFF_ROWS || change.diff.length > APPROVAL_LIMIT;
}

/** Every text of what would happen, but for the changes of a patch. */
export function textsOf(entry: Pending): ShownText[] {
  const command = commandText(entry);
  if (command === undefined && entry.kind !== "fileChange") {
    if (entry.questions !== undefined) return [];
    return [{ name: "", text: JSON.stringify(entry.arguments, null, 2) ?? "null" }];
  }
  const given = typeof entry.arguments === "object" && entry.arguments !== null ? Object.entries(entry.arguments) : [];
  const isQuestion = entry.source.type === "question";
  const rest = given.filter(([key, value]) => !DRAWN.has(key) && !(isQuestion && (ENVELOPE.has(key) || value === null)));
  return [
    ...(command === undefined ? [] : [{ name: "", text: command }]),
    ...rest.map(([name, value]) => ({ name, text: JSON.stringify(value) ?? "" })),
  ];
}

/** Whether everything that would happen has been on the screen. Only then it can be approved. */
export function isShown(entry: Pending, whole: ReadonlySet<string>): boolean {
  const found = changesOf(entry);
  if (entry.kind === "fileChange" && found === undefined) return false;
  if (whole.has(entry.key)) return true;
  const isLong = entry.kind === "fileChange" && (found ?? []).some(isLongDiff);
  return !isLong && textsOf(entry).every(({ text }) => text.length <= APPROVAL_LIMIT);
}
