// Markdown as plain data: what is not understood stays text. There is no HTML in it and no way to get any.

export type Inline =
  | { type: "text"; text: string }
  | { type: "code"; text: string }
  | { type: "strong" | "emphasis" | "strike"; children: Inline[] }
  | { type: "link"; address: string; children: Inline[] }
  | { type: "image"; address: string; alt: string }
  | { type: "break" };

export type Block =
  | { type: "paragraph"; children: Inline[] }
  | { type: "heading"; level: number; children: Inline[] }
  | { type: "code"; language: string; text: string }
  | { type: "quote"; children: Block[] }
  | { type: "list"; start: number | undefined; items: Block[][] }
  | { type: "table"; head: Inline[][]; rows: Inline[][][] }
  | { type: "rule" };

const MAX_DEPTH = 6;
const MAX_INLINE = 20_000;

export function parseMarkdown(text: string, depth = 0): Block[] {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    const [block, next] = blockAt(lines, at, depth);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

const LIST = /^(\s{0,3})([-*+]|(\d{1,9})[.)])\s+(.*)$/;

function blockAt(lines: string[], at: number, depth: number): [Block, number] {
  const line = lines[at] ?? "";
  const fence = /^\s{0,3}(```+|~~~+)\s*([\w+#.-]*)/.exec(line);
  if (fence !== null) return fenced(lines, at, fence[1] ?? "```", fence[2] ?? "");
  if (/^ {4}\S/.test(line)) return indented(lines, at);
  const heading = /^\s{0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(line);
  if (heading !== null) {
    return [{ type: "heading", level: heading[1]?.length ?? 1, children: parseInline(heading[2] ?? "") }, at + 1];
  }
  if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) return [{ type: "rule" }, at + 1];
  if (depth < MAX_DEPTH && /^\s{0,3}>/.test(line)) {
    let end = at;
    while (end < lines.length && /^\s{0,3}>/.test(lines[end] ?? "")) end += 1;
    const inner = lines.slice(at, end).map((quoted) => quoted.replace(/^\s{0,3}> ?/, ""));
    return [{ type: "quote", children: parseMarkdown(inner.join("\n"), depth + 1) }, end];
  }
  if (depth < MAX_DEPTH && LIST.test(line)) return list(lines, at, depth);
  if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) {
    return table(lines, at);
  }
  let end = at + 1;
  while (end < lines.length && (lines[end] ?? "").trim() !== "" && !startsBlock(lines[end] ?? "")) end += 1;
  return [{ type: "paragraph", children: parseInline(lines.slice(at, end).join("\n")) }, end];
}

function startsBlock(line: string): boolean {
  return /^\s{0,3}(```|~~~|#{1,6}\s|>)/.test(line) || LIST.test(line);
}

function fenced(lines: string[], at: number, mark: string, language: string): [Block, number] {
  let end = at + 1;
  while (end < lines.length && !(lines[end] ?? "").trimStart().startsWith(mark)) end += 1;
  return [{ type: "code", language, text: lines.slice(at + 1, end).join("\n") }, end + 1];
}

function indented(lines: string[], at: number): [Block, number] {
  let end = at;
  while (end < lines.length && (/^ {4}/.test(lines[end] ?? "") || (lines[end] ?? "").trim() === "")) end += 1;
  while ((lines[end - 1] ?? "").trim() === "") end -= 1;
  return [{ type: "code", language: "", text: lines.slice(at, end).map((line) => line.slice(4)).join("\n") }, end];
}

function list(lines: string[], first: number, depth: number): [Block, number] {
  const opening = LIST.exec(lines[first] ?? "");
  const isOrdered = opening?.[3] !== undefined;
  const items: Block[][] = [];
  let at = first;
  while (at < lines.length) {
    const mark = LIST.exec(lines[at] ?? "");
    if (mark === null || (mark[3] !== undefined) !== isOrdered) break;
    const indent = (mark[1]?.length ?? 0) + (mark[2]?.length ?? 1) + 1;
    const inner = [mark[4] ?? ""];
    at += 1;
    while (at < lines.length) {
      const line = lines[at] ?? "";
      if (line.trim() === "") {
        const next = lines[at + 1] ?? "";
        if (next.trim() === "" || next.search(/\S/) < 2) break;
        inner.push("");
      } else if (line.search(/\S/) >= Math.min(indent, 2)) {
        inner.push(line.slice(Math.min(indent, line.search(/\S/))));
      } else if (!startsBlock(line)) {
        inner.push(line);
      } else break;
      at += 1;
    }
    items.push(parseMarkdown(inner.join("\n"), depth + 1));
    if ((lines[at] ?? "").trim() === "" && LIST.test(lines[at + 1] ?? "")) at += 1;
  }
  return [{ type: "list", start: isOrdered ? Number(opening?.[3]) : undefined, items }, at];
}

function table(lines: string[], at: number): [Block, number] {
  const cells = (line: string) =>
    line
      .trim()
      .replace(/^\||\|$/g, "")
      .split("|")
      .map((cell) => parseInline(cell.trim()));
  let end = at + 2;
  while (end < lines.length && (lines[end] ?? "").includes("|")) end += 1;
  return [{ type: "table", head: cells(lines[at] ?? ""), rows: lines.slice(at + 2, end).map(cells) }, end];
}

const INLINE =
  /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|!\[([^\]]{0,500})\]\(([^()\s]{0,2000})[^()]{0,200}\)|\[([^[\]]{0,500})\]\(([^()\s]{0,2000})[^()]{0,200}\)|\*\*(?=\S)([\s\S]{0,2000}?\S)\*\*|__(?=\S)([\s\S]{0,2000}?\S)__|~~(?=\S)([\s\S]{0,2000}?\S)~~|(?<![\w*])\*(?=[^\s*])([\s\S]{0,2000}?[^\s*])\*(?!\*)|(?<![\w_])_(?=[^\s_])([\s\S]{0,2000}?[^\s_])_(?![\w_])|(https?:\/\/[^\s<>"'`]{3,2000}[^\s<>"'`.,;:!?)\]])|( {2,}\n)/g;

export function parseInline(text: string, depth = 0): Inline[] {
  // Longer texts are shown unparsed, so that the work stays bounded.
  if (depth > MAX_DEPTH || text.length > MAX_INLINE) return [{ type: "text", text }];
  const found: Inline[] = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > at) found.push({ type: "text", text: text.slice(at, match.index) });
    found.push(inlineOf(match, depth));
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ type: "text", text: text.slice(at) });
  return found;
}

function inlineOf(match: RegExpExecArray, depth: number): Inline {
  const [, , code, alt, source, label, address, strong, strong2, strike, emphasis, emphasis2, bare] = match;
  const inner = (text: string) => parseInline(text, depth + 1);
  if (code !== undefined) return { type: "code", text: code };
  if (source !== undefined) return { type: "image", address: source, alt: alt ?? "" };
  if (address !== undefined) return { type: "link", address, children: [{ type: "text", text: label ?? "" }] };
  if (strong !== undefined || strong2 !== undefined) return { type: "strong", children: inner(strong ?? strong2 ?? "") };
  if (strike !== undefined) return { type: "strike", children: inner(strike) };
  if (emphasis !== undefined || emphasis2 !== undefined) {
    return { type: "emphasis", children: inner(emphasis ?? emphasis2 ?? "") };
  }
  if (bare !== undefined) return { type: "link", address: bare, children: [{ type: "text", text: bare }] };
  return { type: "break" };
}
