// Addresses that a model or a command wrote: only the web and mail, and always with the place they lead to in sight.

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
  // A name before the host is there to be taken for it.
  if (url.username !== "" || url.password !== "") return undefined;
  return { href: url.href, host: url.host };
}

/** Pictures that are in the message itself. Others are shown as their address and never loaded. */
export function inlineImage(address: string): string | undefined {
  return /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+$/.test(address) ? address : undefined;
}
