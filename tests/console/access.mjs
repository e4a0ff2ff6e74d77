// Who gets in, and whether everybody can use it.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";

import { connected, open } from "./browser.mjs";
import { TestHost } from "./host.mjs";

/** The ways a websocket of another page ends: `open` must not be among them. */
const TRY_SOCKET = (url) =>
  new Promise((resolve) => {
    const socket = new WebSocket(url, ["oarlock"]);
    socket.onopen = () => resolve("open");
    socket.onerror = () => resolve("refused");
  });

export const accessChecks = {
  async "axe finds nothing serious, dark and light, wide and narrow"(stage) {
    const waiting = await stage.client.task(stage.host.workspace, "run touch axe.txt", { approvalPolicy: "untrusted", name: "For axe" });
    const some = ["/tasks", "/inbox", `/task/${stage.ids.done}`];
    const windows = [
      [{}, [...some, `/task/${waiting}`, "/new", "/host"]],
      [{ colorScheme: "light" }, some],
      [{ viewport: { width: 390, height: 760 } }, some],
    ];
    for (const [options, pages] of windows) {
      const { page, context, close } = await open(stage, "/tasks", options);
      for (const hash of pages) {
        await page.evaluate((to) => (location.hash = to), hash);
        await connected(page);
        await page.locator("h1").waitFor();
        await page.waitForFunction(() => document.querySelector(".empty") === null);
        const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
        assert.ok(!isWide, `${hash} is wider than the window`);
        // The page's policy lets nothing in that is not its own; the debugger may.
        const session = await context.newCDPSession(page);
        await session.send("Runtime.evaluate", { expression: readFileSync(stage.axe, "utf8") });
        const answer = await session.send("Runtime.evaluate", {
          expression: "axe.run(document, { resultTypes: ['violations'] }).then((found) => JSON.stringify(found.violations.map((one) => [one.id, one.impact, one.nodes.map((node) => node.html.slice(0, 160))])))",
          awaitPromise: true,
          returnByValue: true,
        });
        const serious = JSON.parse(answer.result.value).filter(([, impact]) => impact === "serious" || impact === "critical");
        assert.deepEqual(serious, [], `${hash} ${JSON.stringify(options)}`);
        await session.detach();
      }
      await close();
    }
  },

  async "another page cannot use it"(stage) {
    const server = http.createServer((_, response) => response.end("<!doctype html><title>elsewhere</title>")).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const page = await stage.browser.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    const target = `ws://127.0.0.1:${stage.host.port}/`;
    assert.equal(await page.evaluate(TRY_SOCKET, target), "refused");
    const isFramed = await page.evaluate(async (url) => {
      const frame = document.createElement("iframe");
      frame.src = url;
      const loaded = new Promise((resolve) => (frame.onload = resolve));
      document.body.append(frame);
      await loaded;
      return frame.contentDocument !== null;
    }, stage.host.url);
    assert.equal(isFramed, false);
    await page.close();
    server.close();
  },

  async "an app-server asks for its token, by the form or by a link"(stage) {
    const server = new TestHost(stage.binary, "app-server");
    const token = "open sesame/+=";
    const file = join(server.folder, "token");
    writeFileSync(file, token);
    try {
      await server.start("--ws-auth", "capability-token", "--ws-token-file", file);
      const there = { ...stage, host: server };
      const form = await open(there);
      await form.page.getByLabel("Token").fill("wrong");
      await form.page.getByRole("button", { name: "Connect" }).click();
      await form.page.getByText("does not take this token").waitFor();
      await form.page.getByLabel("Token").fill(token);
      await form.page.getByRole("button", { name: "Connect" }).click();
      await connected(form.page);
      await form.close();
      const link = await open(there, `token=${encodeURIComponent(token)}`);
      await connected(link.page);
      assert.ok(!(await link.page.evaluate(() => location.href)).includes("sesame"));
      // Without a host, the questions of the threads that this window follows are the inbox.
      await link.page.evaluate(() => (location.hash = "/new"));
      await link.page.getByLabel("What is to be done").fill("run touch asked.txt\nsay all done");
      await link.page.getByLabel("Folder on the server").fill(server.workspace);
      await link.page.getByLabel("Asks about").selectOption("untrusted");
      await link.page.getByRole("button", { name: "Start" }).click();
      await link.page.locator(".waiting-here .exact", { hasText: "touch asked.txt" }).waitFor();
      await link.page.keyboard.press("a");
      await link.page.locator(".from-agent", { hasText: "all done" }).waitFor();
      // A turn goes on while another page is shown.
      const task = await link.page.evaluate(() => location.hash);
      await link.page.getByRole("textbox", { name: "Start a turn" }).fill("run until [ -e go ]; do sleep 0.1; done; echo went on");
      await link.page.keyboard.press("Enter");
      await link.page.locator(".waiting-here .exact", { hasText: "went on" }).waitFor();
      await link.page.keyboard.press("Escape");
      await link.page.keyboard.press("a");
      await link.page.locator(".tool.command .st-inProgress").last().waitFor();
      await link.page.keyboard.press("t");
      await link.page.getByRole("heading", { name: "Tasks" }).waitFor();
      writeFileSync(join(server.workspace, "go"), "");
      await link.page.evaluate((hash) => (location.hash = hash), task);
      await link.page.locator(".terminal", { hasText: "went on" }).last().waitFor();
      await link.page.locator(".turn-mark.completed").nth(1).waitFor();
      await link.close();
    } finally {
      await server.close();
    }
  },
};
