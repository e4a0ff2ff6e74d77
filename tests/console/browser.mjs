// A window of the console, with everything that must never happen in it watched for.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { PATIENCE_MS } from "./host.mjs";

/** Opens the console at a page. `close` checks that no script failed and that no request left the server. */
export async function open({ browser, host }, hash = "/tasks", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 720 }, colorScheme: "dark", ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
  page.on("console", (message) => {
    // A lost connection is reported by the browser itself.
    const isLink = /WebSocket|ERR_CONNECTION|net::/.test(message.text());
    if (message.type() === "error" && !isLink) problems.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const { host: target, protocol } = new URL(request.url());
    if (protocol !== "data:" && protocol !== "blob:" && target !== new URL(host.url).host) problems.push(`request: ${request.url()}`);
  });
  if (process.env.CONSOLE_DIST !== undefined) await serveFrom(context, host, process.env.CONSOLE_DIST);
  await page.goto(`${host.url}#${hash}`);
  const close = async () => {
    assert.deepEqual(problems, []);
    await context.close();
  };
  return { page, context, close, problems };
}

/** CONSOLE_DIST=console/dist tries a page that no binary has embedded yet: `vite build` is enough. */
async function serveFrom(context, host, folder) {
  await context.route(`${host.url}**`, async (route) => {
    const { pathname } = new URL(route.request().url());
    const path = join(folder, pathname === "/" ? "index.html" : pathname);
    const headers = (await fetch(host.url, { method: "HEAD" })).headers;
    const policy = { "content-security-policy": headers.get("content-security-policy") };
    await (existsSync(path) ? route.fulfill({ path, headers: { ...policy, "content-type": typeOf(path) } }) : route.continue());
  });
}

function typeOf(path) {
  return path.endsWith(".js") ? "text/javascript" : path.endsWith(".css") ? "text/css" : "text/html; charset=utf-8";
}

/** The window is connected. On a phone the rail does not show it. */
export async function connected(page) {
  await page.locator(".link.ok").waitFor({ state: "attached" });
}

/** Waits until the card has been shown for long enough to be decided. */
export async function looked(page) {
  await page.locator(".card:not(.fresh)").waitFor();
}

/** Every request with this method that the page sends from now on, also over later connections. */
export function sent(page, method) {
  const found = [];
  page.on("websocket", (socket) =>
    socket.on("framesent", ({ payload }) => {
      const message = JSON.parse(payload);
      if (message.method === method) found.push(message.params);
    }),
  );
  return found;
}

export async function text(locator) {
  return (await locator.innerText()).trim();
}

/** Serious and critical findings of axe. */
export async function seriousForAxe({ axe }, context, page) {
  // The page's policy lets nothing in that is not its own; the debugger may.
  const session = await context.newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: readFileSync(axe, "utf8") });
  const answer = await session.send("Runtime.evaluate", {
    expression: "axe.run(document, { resultTypes: ['violations'] }).then((found) => JSON.stringify(found.violations.map((one) => [one.id, one.impact, one.nodes.map((node) => node.html.slice(0, 160))])))",
    awaitPromise: true,
    returnByValue: true,
  });
  await session.detach();
  return JSON.parse(answer.result.value).filter(([, impact]) => impact === "serious" || impact === "critical");
}
