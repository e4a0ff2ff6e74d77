// The token that the server asks for: given once by a link with a fragment or by the form, kept in session storage. It
// leaves this page in one place only, the subprotocol of the websocket, because a page cannot set `Authorization`.

const KEY = "oarlock.token";

/** Takes `#token=…` out of the address, so that it is in no history entry and no screenshot. */
export function takeTokenFromLink(): void {
  const match = /^#token=([^&]+)(?:&(.*))?$/.exec(location.hash);
  if (match?.[1] === undefined) return;
  saveToken(decodeURIComponent(match[1]));
  history.replaceState(null, "", `${location.pathname}#${match[2] ?? "/tasks"}`);
}

export function saveToken(token: string): void {
  const trimmed = token.trim();
  if (trimmed === "") sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, trimmed);
}

export function hasToken(): boolean {
  return sessionStorage.getItem(KEY) !== null;
}

/** The subprotocols that the websocket offers. The server answers with the first. */
export function protocols(): string[] {
  const token = sessionStorage.getItem(KEY);
  if (token === null) return ["oarlock"];
  const bytes = Array.from(new TextEncoder().encode(token), (byte) => String.fromCharCode(byte)).join("");
  const encoded = btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return ["oarlock", `oarlock.bearer.${encoded}`];
}
