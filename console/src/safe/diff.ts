// Diffs as rows: a kind, the two line numbers, the text.

import type { FileUpdateChange } from "../../protocol";

export interface DiffRow {
  kind: "same" | "added" | "removed" | "hunk";
  before: number | undefined;
  after: number | undefined;
  text: string;
}

export function rowsOf(change: FileUpdateChange): DiffRow[] {
  if (change.kind.type !== "update") return wholeFile(change.diff, change.kind.type === "add");
  const rows: DiffRow[] = [];
  let [before, after] = [1, 1];
  for (const line of cut(change.diff)) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line);
    if (hunk !== null) {
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      rows.push({ kind: "hunk", before: undefined, after: undefined, text: line });
    } else if (line.startsWith("+")) {
      rows.push({ kind: "added", before: undefined, after: after++, text: line.slice(1) });
    } else if (line.startsWith("-")) {
      rows.push({ kind: "removed", before: before++, after: undefined, text: line.slice(1) });
    } else if (line.startsWith(" ")) {
      rows.push({ kind: "same", before: before++, after: after++, text: line.slice(1) });
    } else {
      rows.push({ kind: "hunk", before: undefined, after: undefined, text: line });
    }
  }
  return rows;
}

function wholeFile(text: string, isAdded: boolean): DiffRow[] {
  return cut(text).map((line, index) => ({
    kind: isAdded ? ("added" as const) : ("removed" as const),
    before: isAdded ? undefined : index + 1,
    after: isAdded ? index + 1 : undefined,
    text: line,
  }));
}

function cut(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

export function counts(rows: DiffRow[]): { added: number; removed: number } {
  return {
    added: rows.filter((row) => row.kind === "added").length,
    removed: rows.filter((row) => row.kind === "removed").length,
  };
}

/** One line of two columns: what was removed on the left, what came instead on the right. */
export interface DiffPair {
  left: DiffRow | undefined;
  right: DiffRow | undefined;
}

export function pairsOf(rows: readonly DiffRow[]): DiffPair[] {
  const pairs: DiffPair[] = [];
  let [removed, added]: [DiffRow[], DiffRow[]] = [[], []];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) pairs.push({ left: removed[at], right: added[at] });
    [removed, added] = [[], []];
  };
  for (const row of rows) {
    // Lines that are removed after others were added belong to the next change.
    if (row.kind === "removed" && added.length > 0) flush();
    if (row.kind === "removed") removed.push(row);
    else if (row.kind === "added") added.push(row);
    else {
      flush();
      pairs.push({ left: row, right: row });
    }
  }
  flush();
  return pairs;
}
