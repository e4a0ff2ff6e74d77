import { render } from "preact";

import { startChanges } from "./state/changes";
import { startInbox } from "./state/inbox";
import { startKeys } from "./state/keys";
import { startPlacements } from "./state/placements";
import { startRecords } from "./state/records";
import { startRoutes } from "./state/route";
import { startTasks } from "./state/tasks";
import { startThreads } from "./state/thread";
import { startUsage } from "./state/usage";
import { App } from "./ui/App";
import { startClock } from "./ui/format";
import { connection } from "./wire/connection";
import { takeTokenFromLink } from "./wire/token";
import "./style.css";

takeTokenFromLink();
startRoutes();
startKeys();
startClock();
startTasks();
startInbox();
startChanges();
startThreads();
startRecords();
startPlacements();
startUsage();
connection.connect();

const root = document.getElementById("app");
if (root !== null) {
  root.replaceChildren();
  render(<App />, root);
}
