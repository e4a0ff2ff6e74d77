// Pictures that an item names by the path of a file. The file is read on demand, where the task works.

import { signal } from "@preact/signals";

import { connection } from "../wire/connection";

export type FilePicture = { type: "reading" } | { type: "shown"; address: string } | { type: "problem"; text: string };

/** By path. A picture stays read for as long as its task is on the screen. */
export const filePictures = signal<ReadonlyMap<string, FilePicture>>(new Map());

/** In characters of base64: 12 MB. */
const MAX_PICTURE = 16_000_000;

/** The first bytes of each kind of picture that browsers draw without running anything, in base64. */
const KINDS: [string, RegExp][] = [
  ["png", /^iVBORw0KGgo/],
  ["jpeg", /^\/9j\//],
  ["gif", /^R0lGOD/],
  ["webp", /^UklGR.{6}XRUJQ/],
];

function put(path: string, picture: FilePicture): void {
  filePictures.value = new Map(filePictures.peek()).set(path, picture);
}

/** Reads the file in the workspace of this placement, or on the server's own machine. */
export async function readPicture(path: string, placementId: string | undefined): Promise<void> {
  put(path, { type: "reading" });
  try {
    const { dataBase64 } = await connection.request("fs/readFile", { path, ...(placementId === undefined ? {} : { placementId }) });
    const kind = KINDS.find(([, beginning]) => beginning.test(dataBase64.slice(0, 32)))?.[0];
    if (dataBase64.length > MAX_PICTURE) put(path, { type: "problem", text: "The file is too large to be shown." });
    else if (kind === undefined) put(path, { type: "problem", text: "The file is not a PNG, JPEG, GIF or WebP." });
    else put(path, { type: "shown", address: `data:image/${kind};base64,${dataBase64}` });
  } catch (error) {
    put(path, { type: "problem", text: error instanceof Error ? error.message : String(error) });
  }
}

export function forgetPictures(): void {
  filePictures.value = new Map();
}
