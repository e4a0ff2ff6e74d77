// Links that a model or a command wrote. Only http, https and mailto are allowed, and the host is always shown beside the link.

export interface SafeLink {
  href: string;
  /** The host it leads to, as the browser reads the address. */
  host: string;
}

export function safeLink(address: string): SafeLink | undefined {
  if (address.length > 2_048) return undefined;
  let url: URL;
  try {
    url = new URL(address.trim());
  } catch {
    return undefined;
  }
  if (url.protocol === "mailto:") return { href: url.href, host: url.pathname };
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined;
  // `https://bank.example@evil.example/` shows a name before the host to be mistaken for it.
  if (url.username !== "" || url.password !== "") return undefined;
  return { href: url.href, host: url.host };
}

/** Pictures that are in the message itself. Others are shown as their address and never loaded. */
export function inlineImage(address: string): string | undefined {
  return /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+$/.test(address) ? address : undefined;
}
