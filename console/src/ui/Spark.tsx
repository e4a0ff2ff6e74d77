import type { JSX } from "preact";

/** A small line of numbers over time. */
export function Spark({ values }: { values: readonly number[] }): JSX.Element | null {
  if (values.length < 2) return null;
  const [width, height] = [64, 14];
  const most = Math.max(...values, 1);
  const points = values.map((value, index) => `${(index / (values.length - 1)) * width},${height - 1 - (value / most) * (height - 2)}`);
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Tokens of the last ${values.length} responses`}>
      <polyline points={points.join(" ")} fill="none" stroke="currentColor" stroke-width="1.5" />
    </svg>
  );
}
