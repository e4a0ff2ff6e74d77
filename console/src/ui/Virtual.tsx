// Long lists: only what is near the viewport is in the page. Heights are measured as rows are drawn and remembered by key.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef } from "preact/hooks";

interface VirtualProps<T> {
  rows: readonly T[];
  keyOf: (row: T) => string;
  draw: (row: T, index: number) => ComponentChildren;
  estimate: number;
  /** Keeps the end in view as it grows. */
  isFollowing?: boolean;
  /** Called when the person scrolls away from the end, or back to it. */
  onFollow?: (isAtEnd: boolean) => void;
  label: string;
  role?: "list" | "rowgroup" | "log";
  /** A row to bring into view. */
  focus?: number | undefined;
  class?: string;
}

const OVERSCAN = 600;
const AT_END = 24;

export function Virtual<T>(props: VirtualProps<T>): JSX.Element {
  const { rows, keyOf, estimate } = props;
  const box = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<string, number>());
  const [version, redraw] = useReducer((n: number) => n + 1, 0);
  const isFollowing = useRef(props.isFollowing ?? false);
  isFollowing.current = props.isFollowing ?? false;

  const offsets = useMemo(() => {
    const sums = new Float64Array(rows.length + 1);
    for (const [index, row] of rows.entries()) {
      sums[index + 1] = (sums[index] ?? 0) + (heights.current.get(keyOf(row)) ?? estimate);
    }
    return sums;
  }, [rows, version]);
  const total = offsets[rows.length] ?? 0;

  const top = box.current?.scrollTop ?? 0;
  const height = box.current?.clientHeight ?? 800;
  const anchor = isFollowing.current ? Math.max(0, total - height) : top;
  const first = find(offsets, anchor - OVERSCAN);
  const last = Math.min(rows.length, find(offsets, anchor + height + OVERSCAN) + 1);

  const observer = useMemo(
    () =>
      new ResizeObserver((entries) => {
        let changed = false;
        for (const entry of entries) {
          const key = (entry.target as HTMLElement).dataset["key"];
          const measured = entry.borderBoxSize[0]?.blockSize ?? 0;
          if (key === undefined || measured === 0 || heights.current.get(key) === measured) continue;
          heights.current.set(key, measured);
          changed = true;
        }
        if (changed) redraw(0);
      }),
    [],
  );
  useEffect(() => () => observer.disconnect(), [observer]);

  /** Where the list was left when it last followed its end. Whoever scrolled up since is not dragged back. */
  const stuckAt = useRef<number | undefined>(undefined);
  useLayoutEffect(() => {
    const element = box.current;
    if (!isFollowing.current || element === null) {
      stuckAt.current = undefined;
      return;
    }
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < AT_END;
    if (!isAtEnd && element.scrollTop < (stuckAt.current ?? 0) - AT_END) return;
    element.scrollTop = element.scrollHeight;
    stuckAt.current = element.scrollTop;
  });

  useLayoutEffect(() => {
    const element = box.current;
    if (props.focus === undefined || element === null) return;
    const start = offsets[props.focus] ?? 0;
    const end = offsets[props.focus + 1] ?? start;
    if (start < element.scrollTop) element.scrollTop = start;
    else if (end > element.scrollTop + element.clientHeight) element.scrollTop = end - element.clientHeight;
  }, [props.focus]);

  const scrolled = () => {
    const element = box.current;
    if (element === null) return;
    redraw(0);
    props.onFollow?.(element.scrollHeight - element.scrollTop - element.clientHeight < AT_END);
  };

  const itemRole = props.role === "list" ? "listitem" : props.role === "rowgroup" ? "presentation" : undefined;
  return (
    <div class={`virtual ${props.class ?? ""}`} ref={box} onScroll={scrolled} tabIndex={0} role={props.role} aria-label={props.label}>
      <div class="spacer" role="presentation" style={{ height: `${offsets[first] ?? 0}px` }} />
      {rows.slice(first, last).map((row, index) => {
        const key = keyOf(row);
        return (
          <div key={key} data-key={key} role={itemRole} ref={(element) => { if (element !== null) observer.observe(element); }}>
            {props.draw(row, first + index)}
          </div>
        );
      })}
      <div class="spacer" role="presentation" style={{ height: `${total - (offsets[last] ?? total)}px` }} />
    </div>
  );
}

/** The row that a place is in. */
function find(offsets: Float64Array, place: number): number {
  let [low, high] = [0, Math.max(0, offsets.length - 2)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((offsets[middle] ?? 0) <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}
