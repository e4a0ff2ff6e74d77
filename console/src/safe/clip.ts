// Long texts: the beginning and the end are shown, the rest on demand. A line of 50 MB must not stop the page.

export interface Clipped {
  head: string;
  tail: string;
  /** How many characters are left out between `head` and `tail`. */
  left: number;
}

export function clip(text: string, headLength: number, tailLength: number): Clipped {
  if (text.length <= headLength + tailLength) return { head: text, tail: "", left: 0 };
  const head = text.slice(0, headLength);
  const tail = text.slice(text.length - tailLength);
  return { head, tail, left: text.length - headLength - tailLength };
}
