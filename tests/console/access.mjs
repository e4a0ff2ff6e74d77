// Who gets in, and whether everybody can use it.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";

import { connected, looked, open, seriousForAxe } from "./browser.mjs";
import { TestHost } from "./host.mjs";

/** The ways a websocket of another page ends: `open` must not be among them. */
const TRY_SOCKET = ([url, protocols]) =>
  new Promise((resolve) => {
    const socket = new WebSocket(url, protocols);
    socket.onopen = () => resolve("open");
    socket.onerror = () => resolve("refused");
  });

export const accessChecks = {
  async "axe finds nothing serious, dark and light, wide and narrow"(stage) {
    const waiting = await stage.client.task(stage.host.workspace, "run touch axe.txt", { approvalPolicy: "untrusted", name: "For axe" });
    const gone = "/task/00000000-0000-7000-8000-000000000001";
    const pages = ["/tasks", "/inbox", gone, `/task/${waiting}`, "/new", "/host", `/task/${stage.ids.done}/prompt`, `/task/${stage.ids.done}/records`, `/task/${stage.ids.done}`];
    const narrow = { viewport: { width: 900, height: 600 } };
    const phone = { viewport: { width: 390, height: 760 } };
    for (const options of [{}, { colorScheme: "light" }, narrow, phone, { ...phone, colorScheme: "light" }]) {
      const { page, context, close } = await open(stage, "/tasks", options);
      for (const hash of pages) {
        await page.evaluate((to) => (location.hash = to), hash);
        await connected(page);
        await page.locator("h1").waitFor();
        await page.waitForFunction(() => document.querySelector(".empty") === null);
        const isWide = await page.evaluate(() =>
          [document.documentElement, ...document.querySelectorAll(".row, .bar, .card")].some((one) => one.scrollWidth > Math.min(one.clientWidth, innerWidth) + 1),
        );
        assert.ok(!isWide, `${hash} is wider than the window`);
        assert.deepEqual(await seriousForAxe(stage, context, page), [], `${hash} ${JSON.stringify(options)}`);
      }
      // The windows over the last page.
      const windows = [["?", page.locator(".help-groups")]];
      for (const [key, shown] of windows) {
        await page.keyboard.press(key);
        await shown.waitFor();
        assert.deepEqual(await seriousForAxe(stage, context, page), [], `${key} ${JSON.stringify(options)}`);
        await page.keyboard.press("Escape");
        await page.getByRole("dialog").waitFor({ state: "detached" });
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
    assert.equal(await page.evaluate(TRY_SOCKET, [target, ["oarlock"]]), "refused");
    // Nor with a token, which no page but its own can have.
    assert.equal(await page.evaluate(TRY_SOCKET, [target, ["oarlock", "oarlock.bearer.dG9rZW4"]]), "refused");
    const read = (url) => fetch(url).then((answer) => answer.text(), () => "refused");
    assert.equal(await page.evaluate(read, stage.host.url), "refused");
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
      await link.page.getByLabel(/^Sandbox/).selectOption("workspace-write");
      await link.page.getByRole("button", { name: "Start" }).click();
      await link.page.locator(".waiting-here .exact", { hasText: "touch asked.txt" }).waitFor();
      await looked(link.page);
      await link.page.keyboard.press("a");
      await link.page.locator(".from-agent", { hasText: "all done" }).waitFor();
      // A turn goes on while another page is shown.
      const task = await link.page.evaluate(() => location.hash);
      await link.page.getByRole("textbox", { name: "Start a turn" }).fill("run until [ -e go ]; do sleep 0.1; done; echo went on");
      await link.page.keyboard.press("Enter");
      await link.page.locator(".waiting-here .exact", { hasText: "went on" }).waitFor();
      await link.page.keyboard.press("Escape");
      await looked(link.page);
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
