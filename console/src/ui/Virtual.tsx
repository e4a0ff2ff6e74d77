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
  /** Called near the first row: more may be put before it. What is on the screen then stays where it is. */
  onNearStart?: () => void;
  label: string;
  role?: "list" | "rowgroup" | "log";
  /** A row to bring into view. */
  focus?: number | undefined;
  class?: string;
}

const OVERSCAN = 600;
const AT_END = 24;
const NEAR_START = 1_500;

/** The row at the upper edge, and how far the edge is below its beginning. */
interface Anchor {
  key: string;
  below: number;
}

interface DrawnRow<T> {
  row: T;
  index: number;
  node: JSX.Element;
}

export function Virtual<T>(props: VirtualProps<T>): JSX.Element {
  const { rows, keyOf, estimate } = props;
  const box = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<string, number>());
  const [version, measured] = useReducer((n: number) => n + 1, 0);
  const [, moved] = useReducer((n: number) => n + 1, 0);
  /** The rows of the last call. A list that only moves draws the rows that come into view and no others. */
  const drawn = useRef<{ draw: unknown; rows: Map<string, DrawnRow<T>> }>({ draw: undefined, rows: new Map() });
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
  const keepsPlace = props.onNearStart !== undefined;
  const places = useMemo(() => new Map(keepsPlace ? rows.map((row, index) => [keyOf(row), index]) : []), [rows]);
  const anchor = useRef<Anchor | undefined>(undefined);

  const held = anchor.current === undefined ? undefined : places.get(anchor.current.key);
  const top = held === undefined ? (box.current?.scrollTop ?? 0) : (offsets[held] ?? 0) + (anchor.current?.below ?? 0);
  const height = box.current?.clientHeight ?? 800;
  const edge = isFollowing.current ? Math.max(0, total - height) : top;
  const first = find(offsets, edge - OVERSCAN);
  const last = Math.min(rows.length, find(offsets, edge + height + OVERSCAN) + 1);

  const observer = useMemo(
    () =>
      new ResizeObserver((entries) => {
        let changed = false;
        for (const entry of entries) {
          const key = (entry.target as HTMLElement).dataset["key"];
          const height = entry.borderBoxSize[0]?.blockSize ?? 0;
          if (key === undefined || height === 0 || heights.current.get(key) === height) continue;
          heights.current.set(key, height);
          changed = true;
        }
        if (changed) measured(0);
      }),
    [],
  );
  useEffect(() => () => observer.disconnect(), [observer]);

  /** The scroll position when the list last followed its end. A smaller one means that the person scrolled up: stop following. */
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

  // Keeps the row at the upper edge in place when rows are put before it, or when a measured height differs from the estimate.
  useLayoutEffect(() => {
    const element = box.current;
    if (!keepsPlace || element === null) return;
    if (isFollowing.current) anchor.current = undefined;
    const key = anchor.current?.key;
    const row = key === undefined ? null : element.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (row !== null && anchor.current !== undefined) {
      const moved = row.getBoundingClientRect().top - element.getBoundingClientRect().top + anchor.current.below;
      if (Math.abs(moved) > 1) element.scrollTop += moved;
    }
    if (element.scrollTop < NEAR_START) props.onNearStart?.();
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
    if (keepsPlace) anchor.current = anchorOf(element, rows, keyOf, offsets);
    moved(0);
    props.onFollow?.(element.scrollHeight - element.scrollTop - element.clientHeight < AT_END);
  };

  const draw = (row: T, index: number): DrawnRow<T> => {
    const key = keyOf(row);
    const known = drawn.current.draw === props.draw ? drawn.current.rows.get(key) : undefined;
    if (known !== undefined && known.row === row && known.index === index) return known;
    const node = (
      <div key={key} data-key={key} role={itemRole} ref={(element) => { if (element !== null) observer.observe(element); }}>
        {props.draw(row, index)}
      </div>
    );
    return { row, index, node };
  };
  const itemRole = props.role === "list" ? "listitem" : props.role === "rowgroup" ? "presentation" : undefined;
  const shown = rows.slice(first, last).map((row, index) => draw(row, first + index));
  drawn.current = { draw: props.draw, rows: new Map(shown.map((one) => [keyOf(one.row), one])) };
  return (
    <div class={`virtual ${props.class ?? ""}`} ref={box} onScroll={scrolled} tabIndex={0} role={props.role} aria-label={props.label}>
      <div class="spacer" role="presentation" style={{ height: `${offsets[first] ?? 0}px` }} />
      {shown.map(({ node }) => node)}
      <div class="spacer" role="presentation" style={{ height: `${total - (offsets[last] ?? total)}px` }} />
    </div>
  );
}

function anchorOf<T>(element: HTMLElement, rows: readonly T[], keyOf: (row: T) => string, offsets: Float64Array): Anchor | undefined {
  const edge = element.getBoundingClientRect().top;
  for (const row of element.querySelectorAll<HTMLElement>(":scope > [data-key]")) {
    const { top, bottom } = row.getBoundingClientRect();
    if (bottom <= edge) continue;
    if (top > edge + element.clientHeight) break;
    return { key: row.dataset["key"] ?? "", below: edge - top };
  }
  // No row is drawn at the edge yet: take the one that the offsets say.
  const at = find(offsets, element.scrollTop);
  const row = rows[at];
  return row === undefined ? undefined : { key: keyOf(row), below: element.scrollTop - (offsets[at] ?? 0) };
}

/** Index of the row at this distance from the top, by binary search. */
function find(offsets: Float64Array, place: number): number {
  let [low, high] = [0, Math.max(0, offsets.length - 2)];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((offsets[middle] ?? 0) <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}
