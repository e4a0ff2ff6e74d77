// The records of a task as they are stored, one line each, with their JSON on demand.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";

import { plain } from "../safe/characters";
import { lineOf, RecordsView, show, type RecordRow } from "../state/records";
import { useKeys } from "../state/keys";
import { size } from "./format";
import { Json, Visible } from "./Text";
import { Virtual } from "./Virtual";

export function RecordsPage({ id }: { id: string }): JSX.Element {
  const view = useMemo(() => new RecordsView(id), [id]);
  const isFollowing = useSignal(true);
  useEffect(() => show(view), [view]);
  useKeys({ f: () => (isFollowing.value = true) });
  const rows = view.rows.value;
  if (rows.length === 0) {
    return view.problem.value === undefined ? (
      <p class="empty grow">{view.isRead.value ? "Nothing is recorded yet." : "Reading the records …"}</p>
    ) : (
      <div class="all-clear grow" role="alert">
        <p class="big bad">The records cannot be read</p>
        <p><Visible text={view.problem.value} /></p>
        <p class="ways"><button type="button" onClick={() => void view.load()}>Try again</button></p>
      </div>
    );
  }
  return (
    <>
      <Virtual
        rows={rows}
        keyOf={(row) => String(row.ordinal)}
        estimate={31}
        role="list"
        label="Records of this task"
        class="records"
        isFollowing={isFollowing.value}
        onFollow={(isAtEnd) => (isFollowing.value = isAtEnd)}
        onNearStart={() => void view.loadOlder()}
        draw={(row) => <RecordLine row={row} />}
      />
      {!isFollowing.value && (
        <button type="button" class="to-end" onClick={() => (isFollowing.value = true)}>Follow <kbd>f</kbd></button>
      )}
    </>
  );
}

function RecordLine({ row }: { row: RecordRow }): JSX.Element {
  const isOpen = row.isOpen.value;
  return (
    <details class="record" open={isOpen} onToggle={(event) => (row.isOpen.value = event.currentTarget.open)}>
      <summary>
        <span class="ordinal">{row.ordinal}</span>
        <span class={`record-kind r-${plain(row.kind)}`}>{plain(row.kind)}</span>
        <span class="line">{plain(lineOf(row))}</span>
        <span class="size">{size(row.size)}</span>
      </summary>
      {isOpen && <Json value={row.value} label={`record ${row.ordinal}`} />}
    </details>
  );
}
