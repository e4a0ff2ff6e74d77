import type { JSX } from "preact";

import type { UsageSum } from "../../protocol";
import { tokensOf } from "../state/usage";
import { count, money } from "./format";

export interface Bar {
  tokens: number;
  micros: number;
  /** The beginning of its minute, hour or day. */
  atMs: number;
}

const UNITS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };
type Unit = keyof typeof UNITS;

/** Sums by day or minute as bars of equal duration. A time without usage is an empty bar. */
function barsOf(sums: readonly UsageSum[], unit: Unit, most: number, since?: number): Bar[] {
  const points = sums.map((sum) => ({ atMs: momentOf(sum.key), tokens: tokensOf(sum), micros: sum.costMicros })).filter(({ atMs }) => Number.isFinite(atMs));
  if (points.length === 0) return [];
  const first = Math.min(since ?? Infinity, ...points.map(({ atMs }) => atMs));
  const last = Math.max(...points.map(({ atMs }) => atMs));
  const span = Math.floor((last - first) / UNITS[unit]) + 1;
  const step = Math.ceil(span / most) * UNITS[unit];
  const bars = Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, at) => ({ atMs: first + at * step, tokens: 0, micros: 0 }));
  for (const { atMs, tokens, micros } of points) {
    const bar = bars[Math.floor((atMs - first) / step)];
    if (bar === undefined) continue;
    bar.tokens += tokens;
    bar.micros += micros;
  }
  return bars;
}

/** `2026-11-18` or `2026-11-18T15:04`, in UTC. */
function momentOf(key: string): number {
  return Date.parse(key.length <= 10 ? `${key}T00:00Z` : /(Z|[+-]\d\d:\d\d)$/.test(key) ? key : `${key}Z`);
}

interface ChartProps {
  sums: readonly UsageSum[];
  unit: Unit;
  /** The beginning of the time axis; that of the first sum when unset. */
  sinceMs?: number;
}

function wordsOf(bars: readonly Bar[], unit: string): string {
  const [tokens, micros] = bars.reduce(([sum, cost], bar) => [sum + bar.tokens, cost + bar.micros], [0, 0]);
  return `${count(tokens)} tokens${micros === 0 ? "" : `, cost ${money(micros)}`}, by ${unit}`;
}

/** A few bars beside a number. */
export function UsageSpark({ sums, unit }: ChartProps): JSX.Element | null {
  const [width, height] = [72, 16];
  const bars = barsOf(sums, unit, 24);
  if (bars.length === 0) return null;
  const highest = Math.max(...bars.map((bar) => bar.tokens), 1);
  const slot = width / 24;
  const words = wordsOf(bars, unit);
  return (
    <svg class="chart" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={words}>
      <line class="axis" x1={0} x2={width} y1={height - 0.5} y2={height - 0.5} />
      {bars.map((bar, index) => {
        const tall = bar.tokens === 0 ? 0 : Math.max(1.5, (bar.tokens / highest) * (height - 2));
        return <rect x={width - (bars.length - index) * slot} y={height - tall} width={slot - 1} height={tall} />;
      })}
    </svg>
  );
}

const [LEFT, RIGHT, TOP, BOTTOM] = [44, 52, 10, 20];

/** Tokens as bars against the left axis, and the cost so far as a line against the right one. */
export function UsageChart({ sums, unit, sinceMs }: ChartProps): JSX.Element | null {
  // Drawn at its real width: a scaled chart would have unreadable letters on a phone.
  const [width, height] = [Math.min(720, Math.max(300, innerWidth - 80)), 150];
  const bars = barsOf(sums, unit, 120, sinceMs);
  if (bars.length === 0) return null;
  const highest = Math.max(...bars.map((bar) => bar.tokens), 1);
  const total = bars.reduce((sum, bar) => sum + bar.micros, 0);
  const [inner, base] = [width - LEFT - RIGHT, height - BOTTOM];
  const slot = inner / bars.length;
  const wide = Math.min(slot - 1, 28);
  const y = (part: number) => base - part * (base - TOP);
  let [soFar, points] = [0, `${LEFT},${y(0)} `];
  for (const [index, bar] of bars.entries()) {
    soFar += bar.micros;
    points += `${LEFT + (index + 0.5) * slot},${y(total === 0 ? 0 : soFar / total)} `;
  }
  const words = wordsOf(bars, unit);
  const label = (atMs: number) => {
    const at = new Date(atMs).toISOString();
    return unit === "day" ? at.slice(5, 10) : at.slice(11, 16);
  };
  const marks = [...new Set([0, Math.floor((bars.length - 1) / 2), bars.length - 1])];
  return (
    <figure class="usage">
      <svg class="chart large" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={words}>
        {[0, 0.5, 1].map((part) => (
          <>
            <line class="axis" x1={LEFT} x2={width - RIGHT} y1={y(part)} y2={y(part)} />
            <text x={LEFT - 6} y={y(part) + 3.5} text-anchor="end">{count(Math.round(highest * part))}</text>
            {total > 0 && <text x={width - RIGHT + 6} y={y(part) + 3.5}>{part === 0 ? "0" : money(total * part)}</text>}
          </>
        ))}
        {bars.map((bar, index) => bar.tokens > 0 && (
          <rect x={LEFT + (index + 0.5) * slot - wide / 2} y={y(bar.tokens / highest)} width={Math.max(1, wide)} height={base - y(bar.tokens / highest)}>
            <title>{`${label(bar.atMs)}: ${count(bar.tokens)} tokens${bar.micros > 0 ? `, ${money(bar.micros)}` : ""}`}</title>
          </rect>
        ))}
        {total > 0 && <polyline points={points} />}
        {marks.map((at) => (
          <text x={LEFT + (at + 0.5) * slot} y={height - 5} text-anchor="middle">{label(bars[at]?.atMs ?? 0)}</text>
        ))}
      </svg>
      <figcaption>
        <span class="key bars" /> tokens each {unit}
        {total > 0 && <><span class="key line" /> cost so far</>}
        <span class="zone">times in UTC</span>
      </figcaption>
    </figure>
  );
}
