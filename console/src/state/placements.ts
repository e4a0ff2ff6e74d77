// The placements of the host, and the progress of one that is being made.

import { signal } from "@preact/signals";

import type { PlacementInfo, PlacementProgressNotification } from "../../protocol";
import { connection } from "../wire/connection";

export const placements = signal<ReadonlyMap<string, PlacementInfo>>(new Map());
/** The last step of a placement that is being made. */
export const progress = signal<PlacementProgressNotification | undefined>(undefined);

async function reload(): Promise<void> {
  if (!connection.isHost) {
    placements.value = new Map();
    return;
  }
  const { data } = await connection.request("placement/list", {});
  placements.value = new Map(data.map((place) => [place.id, place]));
}

export function startPlacements(): void {
  connection.onReady(() => void reload().catch(() => undefined));
  connection.onNotice((notice) => {
    if (notice.method === "placement/status/changed") {
      const { placement } = notice.params;
      placements.value = new Map(placements.peek()).set(placement.id, placement);
    } else if (notice.method === "placement/progress") {
      progress.value = notice.params;
    }
  });
}
