// Characters that cannot be seen, or that change how others are seen. In what people approve they are shown by number.

const NAMES: Record<number, string> = {
  0x00: "null", 0x07: "bell", 0x08: "backspace", 0x09: "tab", 0x0a: "line feed", 0x0d: "carriage return", 0x1b: "escape", 0x7f: "delete",
  0xa0: "no-break space", 0xad: "soft hyphen", 0x61c: "Arabic letter mark",
  0x200b: "zero width space", 0x200c: "zero width non-joiner", 0x200d: "zero width joiner",
  0x200e: "left-to-right mark", 0x200f: "right-to-left mark",
  0x2028: "line separator", 0x2029: "paragraph separator",
  0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding", 0x202c: "pop directional formatting",
  0x202d: "left-to-right override", 0x202e: "right-to-left override",
  0x2060: "word joiner", 0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate",
  0x2068: "first strong isolate", 0x2069: "pop directional isolate", 0x3164: "Hangul filler", 0xfeff: "byte order mark",
};

/** Control, bidirectional, zero-width and filler characters, blanks that are not a space, tags, lone surrogates. */
const HIDDEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu;

export interface Piece {
  text: string;
  /** The number and name of a hidden character; unset for visible text. */
  hidden?: string;
}

/** Cuts a text into what can be seen and hidden characters. Runs of one hidden character become one piece. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  HIDDEN.lastIndex = 0;
  for (let match = HIDDEN.exec(text); match !== null; match = HIDDEN.exec(text)) {
    if (match.index > at) found.push({ text: text.slice(at, match.index) });
    const character = match[0];
    let end = match.index + character.length;
    while (text.startsWith(character, end)) end += character.length;
    const count = (end - match.index) / character.length;
    const code = character.codePointAt(0) ?? 0;
    const number = `\\u{${code.toString(16)}}`;
    found.push({
      text: count > 1 ? `${number}×${count}` : number,
      hidden: `U+${code.toString(16).toUpperCase().padStart(4, "0")} ${NAMES[code] ?? "hidden character"}`,
    });
    at = end;
    HIDDEN.lastIndex = end;
  }
  if (at < text.length) found.push({ text: text.slice(at) });
  return found;
}

/** The same as plain text, for titles and names. */
export function plain(text: string): string {
  return pieces(text.replaceAll(/[\n\t]+/g, " "))
    .map((piece) => piece.text)
    .join("");
}

export function hasHidden(text: string): boolean {
  HIDDEN.lastIndex = 0;
  return HIDDEN.test(text);
}
