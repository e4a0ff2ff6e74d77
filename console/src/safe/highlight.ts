// Colours for code, by rules that fit most languages: comments, strings, numbers, common keywords. One line at a time.

export interface Token {
  text: string;
  kind: "comment" | "string" | "number" | "keyword" | "plain";
}

/** Kinds of files that hold prose. "and" and "for" are no keywords there. */
const PROSE = /(^|[./])(adoc|changelog|csv|licen[cs]e|log|markdown|md|notice|readme|rst|text|txt)$/i;

/** By the name of a language, or by the path of a file. */
export function isProse(name: string): boolean {
  return PROSE.test(name);
}

const KEYWORDS = new Set(
  ("abstract and as async await bool break case catch class const continue def default del do elif else enum except export extends false " +
    "finally fn for from func function go if impl import in interface is lambda let loop match mod mut new nil none not null " +
    "or package pass private pub public raise return self static str struct super switch this throw trait true try type use " +
    "var void where while with yield then fi done esac echo None True False Self int string float char unsigned")
    .split(" "),
);

const TOKEN = /(\/\/.*|#(?![\da-fA-F]{3,8}\b).*|--\s.*|\/\*.*?(?:\*\/|$))|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`?)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)|([^"'`\w/#-]+|.)/g;
const LONGEST_LINE = 2_000;

export function highlight(line: string): Token[] {
  if (line.length > LONGEST_LINE) return [{ text: line, kind: "plain" }];
  const tokens: Token[] = [];
  for (const [text, comment, string, number, word] of line.matchAll(TOKEN)) {
    const kind =
      comment !== undefined
        ? "comment"
        : string !== undefined
          ? "string"
          : number !== undefined
            ? "number"
            : word !== undefined && KEYWORDS.has(word)
              ? "keyword"
              : "plain";
    const last = tokens.at(-1);
    if (last?.kind === kind) last.text += text;
    else tokens.push({ text, kind });
  }
  return tokens;
}
