// The console in a real browser, against the real binary with the offline model.
//
//   node tests/console/run.mjs BINARY [--screenshots FOLDER] [NAME...]
//
// Needs `npm install --no-save` in console/ and a chromium. One line per check; the first that fails ends the run.
import { existsSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { accessChecks } from "./access.mjs";
import { choiceChecks } from "./choices.mjs";
import { crewChecks } from "./crew.mjs";
import { decisionChecks } from "./decisions.mjs";
import { TestHost } from "./host.mjs";
import { liveChecks } from "./live.mjs";
import { loadChecks } from "./load.mjs";
import { pageChecks } from "./pages.mjs";
import { seed } from "./scenes.mjs";
import { takeScreenshots } from "./screenshots.mjs";
import { viewChecks } from "./views.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const require = createRequire(join(root, "console/package.json"));
const { chromium } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");

const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const [binary, ...rest] = process.argv.slice(2);
const shotsAt = rest.indexOf("--screenshots");
const shots = shotsAt < 0 ? undefined : rest.splice(shotsAt, 2)[1];

const executablePath = process.env.CHROMIUM ?? BROWSERS.find(existsSync);
if (executablePath === undefined) {
  console.log("skipped: there is no chromium");
  process.exit(0);
}

const args = ["--no-sandbox", "--disable-dev-shm-usage"];
// A page that the tests serve themselves comes from nowhere, and may not reach this machine otherwise.
if (process.env.CONSOLE_DIST !== undefined) args.push("--disable-features=LocalNetworkAccessChecks");
const browser = await chromium.launch({ executablePath, args });
const host = new TestHost(binary);
let failed = false;
try {
  await host.start();
  const client = await host.client();
  const ids = await seed(client, host);
  const stage = { browser, host, client, ids, axe, binary };
  if (shots !== undefined) {
    mkdirSync(shots, { recursive: true });
    console.log((await takeScreenshots(stage, shots)).join(" "));
  } else {
    const checks = { ...pageChecks, ...decisionChecks, ...choiceChecks, ...crewChecks, ...liveChecks, ...viewChecks, ...loadChecks, ...accessChecks };
    let passed = 0;
    for (const [name, check] of Object.entries(checks)) {
      if (rest.length > 0 && !rest.some((word) => name.includes(word))) continue;
      const before = Date.now();
      try {
        await check(stage);
      } catch (error) {
        console.log(`FAILED ${name} after ${Date.now() - before} ms\n${error.stack}\n--- the host said\n${host.log.slice(-2_000)}`);
        for (const context of browser.contexts()) {
          for (const page of context.pages()) console.log(`--- ${page.url()}\n${await page.locator("body").innerText().catch(String)}`);
        }
        failed = true;
        break;
      }
      passed += 1;
      console.log(`ok ${name} (${Date.now() - before} ms)`);
    }
    if (!failed) console.log(`${passed} ok, 0 failed`);
  }
  stage.client.close();
} finally {
  await browser.close();
  await host.close();
}
process.exit(failed ? 1 : 0);
