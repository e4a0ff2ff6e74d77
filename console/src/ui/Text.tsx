// Everything that a model or a command wrote is drawn here, as text nodes and nothing else.

import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { FileUpdateChange } from "../../protocol";
import { parseAnsi } from "../safe/ansi";
import { hasHidden, pieces, plain } from "../safe/characters";
import { clip } from "../safe/clip";
import { counts, pairsOf, rowsOf, type DiffPair, type DiffRow } from "../safe/diff";
import { highlight, isProse } from "../safe/highlight";
import { safeLink } from "../safe/links";
import { parseMarkdown, type Block, type Inline } from "../safe/markdown";
import { canBeSideBySide, isSideBySide, switchDiffs } from "../state/diffs";
import { APPROVAL_LIMIT, DIFF_ROWS } from "../state/shown";

/** Text with every hidden character shown by its number. */
export function Visible({ text }: { text: string }): JSX.Element {
  if (!hasHidden(text)) return <>{text}</>;
  return (
    <>
      {pieces(text).map((piece) =>
        piece.hidden === undefined ? (
          piece.text
        ) : (
          <span class="hidden-char" title={piece.hidden}>
            {piece.text}
          </span>
        ),
      )}
    </>
  );
}

/** The beginning and the end of a long text; all of it on demand. */
function Clip(props: { text: string; head: number; tail: number; draw: (text: string) => ComponentChildren }): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const cut = clip(props.text, isWhole ? Infinity : props.head, props.tail);
  if (cut.left === 0) return <>{props.draw(cut.head)}</>;
  return (
    <>
      {props.draw(cut.head)}
      <button type="button" class="clip" onClick={() => setWhole(true)}>
        … {cut.left.toLocaleString()} characters not shown; show them
      </button>
      {props.draw(cut.tail)}
    </>
  );
}

/** Exactly the text that would run: hidden characters by number, left to right whatever its letters are. */
export function Exact({ text, label, isWhole }: { text: string; label: string; isWhole: boolean }): JSX.Element {
  const cut = clip(text, isWhole ? Infinity : APPROVAL_LIMIT / 2, APPROVAL_LIMIT / 2);
  return (
    <pre class="exact" tabIndex={0} role="group" aria-label={label}>
      <Visible text={cut.head} />
      {cut.left > 0 && <span class="cut">{`\n… ${cut.left.toLocaleString()} characters not shown …\n`}</span>}
      <Visible text={cut.tail} />
    </pre>
  );
}

/** Closer to the end than this counts as being there. */
const AT_END = 24;

/** Output of a command. While it runs the end is kept in view, unless the person scrolled away from it. */
export function Ansi({ text, label, isLive = false }: { text: string; label: string; isLive?: boolean }): JSX.Element {
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (isLive && isAtEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [text, isLive]);
  const scrolled = ({ currentTarget: one }: { currentTarget: HTMLPreElement }) => {
    isAtEnd.current = one.scrollHeight - one.scrollTop - one.clientHeight < AT_END;
  };
  return (
    <pre ref={box} class="terminal" tabIndex={0} role="group" aria-label={label} onScroll={scrolled}>
      <Clip text={text} head={4_000} tail={24_000} draw={(part) => <AnsiSpans text={part} />} />
    </pre>
  );
}

function AnsiSpans({ text }: { text: string }): JSX.Element {
  const spans = useMemo(() => parseAnsi(text), [text]);
  return (
    <>
      {spans.map((span) =>
        span.classes === "" && span.color === undefined && span.background === undefined ? (
          <Visible text={span.text} />
        ) : (
          <span class={span.classes} style={{ color: span.color, backgroundColor: span.background }}>
            <Visible text={span.text} />
          </span>
        ),
      )}
    </>
  );
}

export function Code({ text, language = "" }: { text: string; language?: string }): JSX.Element {
  return (
    <pre class="code" tabIndex={0} role="group" aria-label={language === "" ? "Code" : `Code, ${language}`}>
      <Clip text={text} head={20_000} tail={4_000} draw={(part) => <CodeLines text={part} isPlain={isProse(language)} />} />
    </pre>
  );
}

function CodeLines({ text, isPlain }: { text: string; isPlain: boolean }): JSX.Element {
  return (
    <>
      {text.split("\n").map((line, index) => (
        <>
          {index > 0 ? "\n" : ""}
          <CodeLine text={line} isPlain={isPlain} />
        </>
      ))}
    </>
  );
}

function CodeLine({ text, isPlain }: { text: string; isPlain: boolean }): JSX.Element {
  if (isPlain) return <Visible text={text} />;
  return (
    <>
      {highlight(text).map((token) =>
        token.kind === "plain" ? (
          <Visible text={token.text} />
        ) : (
          <span class={`t-${token.kind}`}>
            <Visible text={token.text} />
          </span>
        ),
      )}
    </>
  );
}

const MAX_MARKDOWN = 120_000;

export function Markdown({ text }: { text: string }): JSX.Element {
  const blocks = useMemo(() => (text.length > MAX_MARKDOWN ? undefined : parseMarkdown(text)), [text]);
  if (blocks === undefined) {
    return <Clip text={text} head={20_000} tail={20_000} draw={(part) => <p class="pre"><Visible text={part} /></p>} />;
  }
  return <div class="markdown">{blocks.map((block) => <MarkdownBlock block={block} />)}</div>;
}

function MarkdownBlock({ block }: { block: Block }): JSX.Element {
  switch (block.type) {
    case "paragraph":
      return <p><Inlines parts={block.children} /></p>;
    case "heading":
      // A paragraph, because headings of a message must not mix with those of the page for screen readers.
      return <p class={`heading h${block.level}`}><Inlines parts={block.children} /></p>;
    case "code":
      return <Code text={block.text} language={block.language} />;
    case "quote":
      return <blockquote>{block.children.map((child) => <MarkdownBlock block={child} />)}</blockquote>;
    case "list": {
      const items = block.items.map((item) => <li>{item.map((child) => <MarkdownBlock block={child} />)}</li>);
      return block.start === undefined ? <ul>{items}</ul> : <ol start={block.start}>{items}</ol>;
    }
    case "table":
      return (
        <div class="scroll-x" tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead><tr>{block.head.map((cell) => <th><Inlines parts={cell} /></th>)}</tr></thead>
            <tbody>{block.rows.map((row) => <tr>{row.map((cell) => <td><Inlines parts={cell} /></td>)}</tr>)}</tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr />;
  }
}

function Inlines({ parts }: { parts: Inline[] }): JSX.Element {
  return <>{parts.map((part) => <InlinePart part={part} />)}</>;
}

function InlinePart({ part }: { part: Inline }): JSX.Element {
  switch (part.type) {
    case "text":
      return <Visible text={part.text} />;
    case "code":
      return <code><Visible text={part.text} /></code>;
    case "strong":
      return <strong><Inlines parts={part.children} /></strong>;
    case "emphasis":
      return <em><Inlines parts={part.children} /></em>;
    case "strike":
      return <s><Inlines parts={part.children} /></s>;
    case "break":
      return <br />;
    case "image":
      return <span class="inert">[picture, not loaded: <Visible text={`${part.alt} ${part.address}`} />]</span>;
    case "link":
      return <Link address={part.address}><Inlines parts={part.children} /></Link>;
  }
}

export function Link({ address, children }: { address: string; children: ComponentChildren }): JSX.Element {
  const link = safeLink(address);
  if (link === undefined) return <span class="inert">{children} [<Visible text={address} />]</span>;
  return (
    <>
      <a href={link.href} target="_blank" rel="noopener noreferrer nofollow">{children}</a>
      <span class="link-host"> ({link.host})</span>
    </>
  );
}

interface DiffProps {
  change: FileUpdateChange;
  /** Set on a card: the card decides whether the whole diff is shown, because only then it can be approved. */
  approval?: { isWhole: boolean };
  /** Paths are shown relative to this folder. */
  folder?: string;
}

export function Diff({ change, approval, folder = "" }: DiffProps): JSX.Element {
  const rows = useMemo(() => rowsOf(change), [change]);
  const [isOpen, setOpen] = useState(false);
  const isWhole = approval?.isWhole ?? isOpen;
  const isExact = approval !== undefined;
  const isPlain = isProse(change.path);
  const total = counts(rows);
  const shown = isWhole ? rows : rows.slice(0, DIFF_ROWS);
  const kinds = { add: "new file", delete: "deleted", update: "changed" };
  const moved = change.kind.type === "update" ? change.kind.move_path : null;
  return (
    <figure class="diff">
      <figcaption>
        <span class={`kind ${change.kind.type}`}>{kinds[change.kind.type]}</span>
        <span class="path" title={plain(change.path)}><Visible text={shownPath(change.path, folder)} />{moved === null ? "" : <> → <Visible text={moved} /></>}</span>
        <span class="plus">+{total.added}</span>
        <span class="minus">−{total.removed}</span>
        {canBeSideBySide() && total.added > 0 && total.removed > 0 && (
          <button type="button" class="quiet" aria-pressed={isSideBySide()} onClick={switchDiffs}>Side by side <kbd>v</kbd></button>
        )}
      </figcaption>
      <div class="diff-rows" tabIndex={0} role="group" aria-label={`Changes of ${plain(change.path)}`}>
        {isSideBySide() && total.added > 0 && total.removed > 0
          ? pairsOf(shown).map((pair) => <DiffTwo pair={pair} isExact={isExact} isPlain={isPlain} />)
          : shown.map((row) => <DiffLine row={row} isExact={isExact} isPlain={isPlain} />)}
      </div>
      {shown.length < rows.length &&
        (isExact ? (
          <p class="cut">… {rows.length - shown.length} more lines …</p>
        ) : (
          <button type="button" class="clip" onClick={() => setOpen(true)}>
            … {rows.length - shown.length} more lines; show them
          </button>
        ))}
    </figure>
  );
}

export function shownPath(path: string, folder: string): string {
  return folder !== "" && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
}

const SIGNS: Record<DiffRow["kind"], string> = { added: "+", removed: "−", same: " ", hunk: "" };

interface DiffLook {
  isExact: boolean;
  isPlain: boolean;
}

function DiffLine({ row, isExact, isPlain }: { row: DiffRow } & DiffLook): JSX.Element {
  return (
    <div class={`diff-row ${row.kind}`}>
      <span class="number">{row.before ?? ""}</span>
      <span class="number">{row.after ?? ""}</span>
      <span class="sign">{SIGNS[row.kind]}</span>
      <span class="line">{row.kind === "hunk" || isExact ? <Visible text={row.text} /> : <CodeLine text={row.text} isPlain={isPlain} />}</span>
    </div>
  );
}

function DiffTwo({ pair, isExact, isPlain }: { pair: DiffPair } & DiffLook): JSX.Element {
  if (pair.left?.kind === "hunk") return <DiffLine row={pair.left} isExact={isExact} isPlain={isPlain} />;
  const half = (row: DiffRow | undefined, number: number | undefined) => (
    <div class={`half ${row?.kind ?? "none"}`}>
      <span class="number">{number ?? ""}</span>
      <span class="sign">{row === undefined ? "" : SIGNS[row.kind]}</span>
      <span class="line">{row !== undefined && (isExact ? <Visible text={row.text} /> : <CodeLine text={row.text} isPlain={isPlain} />)}</span>
    </div>
  );
  return (
    <div class="diff-two">
      {half(pair.left, pair.left?.before)}
      {half(pair.right, pair.right?.after)}
    </div>
  );
}

/** A JSON value, indented. */
export function Json({ value, label }: { value: unknown; label: string }): JSX.Element {
  return <Code text={JSON.stringify(value, null, 2) ?? "null"} language={label} />;
}
