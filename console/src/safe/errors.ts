// Errors of providers: a sentence for people, taken out of the JSON that many of them come as.

export interface ReadableError {
  message: string;
  /** The whole error as it came, when `message` is only a part of it. */
  raw: string | undefined;
}

const MAX_JSON = 100_000;

/** The `message` of the JSON at the end of a text, however deep it is within `error`. */
export function readableError(text: string): ReadableError {
  const start = text.indexOf("{");
  if (start < 0 || text.length > MAX_JSON) return { message: text, raw: undefined };
  let value: unknown;
  try {
    value = JSON.parse(text.slice(start, text.lastIndexOf("}") + 1));
  } catch {
    return { message: text, raw: undefined };
  }
  for (let depth = 0; depth < 4 && typeof value === "object" && value !== null; depth += 1) {
    const { message, error, detail } = value as { message?: unknown; error?: unknown; detail?: unknown };
    const found = message ?? detail;
    if (typeof found === "string" && found.trim() !== "") {
      const before = text.slice(0, start).replace(/[\s:,]+$/, "");
      return { message: before === "" ? found : `${before}: ${found}`, raw: text };
    }
    value = error;
  }
  return { message: text, raw: undefined };
}
