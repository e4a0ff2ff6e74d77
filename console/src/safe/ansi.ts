// Terminal output as spans of text with colours. Everything but colours and weights is dropped: no links, no titles, no
// moving of the cursor, no hiding. The number of spans is bounded, whatever the output holds.

export interface Span {
  text: string;
  /** Classes of the style sheet. */
  classes: string;
  color?: string;
  background?: string;
}

const MAX_SPANS = 4_000;

interface Style {
  foreground?: string;
  background?: string;
  isBold: boolean;
  isDim: boolean;
  isItalic: boolean;
  isUnderlined: boolean;
  isInverse: boolean;
}

const PLAIN: Style = { isBold: false, isDim: false, isItalic: false, isUnderlined: false, isInverse: false };

// CSI; OSC, DCS, SOS, PM, APC up to their end; two-character escapes; what is left of a broken one.
// eslint-disable-next-line no-control-regex
const ESCAPE = /\u001b\[([0-9;:]*)m|\u001b\[[0-?]*[ -/]*[@-~]|\u009b[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b\u009c]{0,4096}(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]?/g;

export function parseAnsi(text: string): Span[] {
  const spans: Span[] = [];
  let style = PLAIN;
  let at = 0;
  const push = (part: string) => {
    if (part === "") return;
    const last = spans.at(-1);
    const next = spanOf(rewriteLines(part), style);
    if (last !== undefined && last.classes === next.classes && last.color === next.color && last.background === next.background) {
      last.text += next.text;
    } else if (spans.length >= MAX_SPANS && last !== undefined) {
      last.text += next.text;
    } else {
      spans.push(next);
    }
  };
  ESCAPE.lastIndex = 0;
  for (let match = ESCAPE.exec(text); match !== null; match = ESCAPE.exec(text)) {
    push(text.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[1] !== undefined) style = applied(style, match[1]);
  }
  push(text.slice(at));
  return spans;
}

/** A carriage return begins the line again, as progress bars do; `\r\n` is one line end. */
function rewriteLines(text: string): string {
  if (!text.includes("\r")) return text;
  return text
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => line.slice(line.lastIndexOf("\r", line.length - 2) + 1).replaceAll("\r", ""))
    .join("\n");
}

function spanOf(text: string, style: Style): Span {
  let { foreground, background } = style;
  if (style.isInverse) [foreground, background] = [background ?? "bg", foreground ?? "fg"];
  // Text in the colour of its background would be hidden.
  if (foreground === background) background = undefined;
  const classes: string[] = [];
  if (style.isBold) classes.push("a-b");
  if (style.isDim) classes.push("a-d");
  if (style.isItalic) classes.push("a-i");
  if (style.isUnderlined) classes.push("a-u");
  const span: Span = { text, classes: "" };
  if (foreground?.startsWith("#")) span.color = foreground;
  else if (foreground !== undefined) classes.push(`a-f${foreground}`);
  if (background?.startsWith("#")) {
    span.background = background;
    // Text without a colour of its own gets one that can be read on the background that the output chose.
    if (span.color === undefined) classes.push("a-on");
  } else if (background !== undefined) classes.push(`a-k${background}`);
  span.classes = classes.join(" ");
  return span;
}

function applied(style: Style, parameters: string): Style {
  const codes = parameters === "" ? [0] : parameters.split(/[;:]/).map((code) => Number(code || 0));
  let next = { ...style };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 0) next = { ...PLAIN };
    else if (code === 1) next.isBold = true;
    else if (code === 2) next.isDim = true;
    else if (code === 3) next.isItalic = true;
    else if (code === 4) next.isUnderlined = true;
    else if (code === 7) next.isInverse = true;
    else if (code === 22) [next.isBold, next.isDim] = [false, false];
    else if (code === 23) next.isItalic = false;
    else if (code === 24) next.isUnderlined = false;
    else if (code === 27) next.isInverse = false;
    else if (code === 39) delete next.foreground;
    else if (code === 49) delete next.background;
    else if (code >= 30 && code <= 37) next.foreground = String(code - 30);
    else if (code >= 90 && code <= 97) next.foreground = String(code - 82);
    else if (code >= 40 && code <= 47) next.background = String(code - 40);
    else if (code >= 100 && code <= 107) next.background = String(code - 92);
    else if (code === 38 || code === 48) {
      const [color, used] = extended(codes.slice(at + 1));
      if (color !== undefined && code === 38) next.foreground = color;
      if (color !== undefined && code === 48) next.background = color;
      at += used;
    }
  }
  return next;
}

function extended(codes: number[]): [string | undefined, number] {
  const hex = (...parts: number[]) =>
    `#${parts.map((part) => Math.max(0, Math.min(255, Math.trunc(part) || 0)).toString(16).padStart(2, "0")).join("")}`;
  if (codes[0] === 2) return [hex(codes[1] ?? 0, codes[2] ?? 0, codes[3] ?? 0), 4];
  if (codes[0] !== 5) return [undefined, 1];
  const index = codes[1] ?? 0;
  if (index < 16) return [String(Math.max(0, index)), 2];
  if (index >= 232) return [hex(8 + (index - 232) * 10, 8 + (index - 232) * 10, 8 + (index - 232) * 10), 2];
  const level = (part: number) => (part === 0 ? 0 : 55 + part * 40);
  const cube = index - 16;
  return [hex(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)), 2];
}
