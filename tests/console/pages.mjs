// Each page, a live turn, hostile content, the headers.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { connected, open, text } from "./browser.mjs";

export const pageChecks = {
  async "the page comes with a strict policy and paints soon"(stage) {
    const answer = await fetch(stage.host.url);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("cache-control"), "no-store");
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    const policy = answer.headers.get("content-security-policy");
    for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"]) {
      assert.ok(policy.includes(part), part);
    }
    const html = await answer.text();
    assert.ok(!/<script(?![^>]*\bsrc=)/.test(html) && !/ on\w+=/.test(html), html);
    const asset = /src="(\/assets\/[^"]+)"/.exec(html)[1];
    const script = await fetch(new URL(asset, stage.host.url));
    assert.match(script.headers.get("cache-control"), /immutable/);
    const { page, close } = await open(stage);
    await connected(page);
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    console.log(`   first paint after ${Math.round(paint)} ms`);
    await close();
  },

  async "tasks are a table that can be filtered and searched"(stage) {
    const { page, close } = await open(stage);
    await page.getByRole("link", { name: "Release 2.4" }).waitFor();
    assert.equal(await page.locator(".row:not(.head)").count(), 5);
    await page.getByRole("button", { name: /^waiting/ }).click();
    await page.waitForFunction(() => document.querySelectorAll(".row:not(.head)").length === 3);
    await page.getByRole("searchbox").fill("release");
    await page.waitForFunction(() => document.querySelectorAll(".row:not(.head)").length === 1);
    await page.getByRole("link", { name: "Release 2.4" }).click();
    await page.getByRole("heading", { name: "Release 2.4" }).waitFor();
    await close();
  },

  async "a task shows its items, and a turn as it happens"(stage) {
    const { page, close } = await open(stage, `/task/${stage.ids.done}`);
    await page.locator(".terminal .a-f2", { hasText: "ok" }).waitFor();
    await page.locator(".diff-row.added", { hasText: "The parser takes a name and a count." }).waitFor();
    await page.getByRole("textbox", { name: "Start a turn" }).fill("plan: one; two\nrun echo live output\nsay **bold** and `code`");
    await page.keyboard.press("Enter");
    await page.locator(".terminal", { hasText: "live output" }).waitFor();
    await page.locator(".plan li", { hasText: "one" }).waitFor();
    await page.locator(".from-agent strong", { hasText: "bold" }).waitFor();
    assert.equal(await text(page.locator(".turn-mark").last().locator(".status")), "completed");
    assert.equal(await page.getByRole("textbox", { name: "Start a turn" }).inputValue(), "");
    await close();
  },

  async "a running turn is steered and interrupted"(stage) {
    const { page, close } = await open(stage, `/task/${stage.ids.hostile}`);
    await page.getByRole("textbox", { name: "Start a turn" }).fill("run sleep 600");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Interrupt" }).waitFor();
    await page.getByRole("textbox", { name: "Add to the running turn" }).fill("say steered");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector(".composer textarea").value === "");
    await page.getByRole("button", { name: "Interrupt" }).click();
    await page.locator(".turn-mark.interrupted").waitFor();
    await close();
  },

  async "what a model or a command printed stays text"(stage) {
    const { page, close } = await open(stage, `/task/${stage.ids.hostile}`);
    const answer = page.locator(".from-agent .body").first();
    await answer.waitFor();
    assert.match(await text(answer), /<script>window\.pwned = 1<\/script>/);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    const links = await page.locator(".items a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    assert.ok(links.length > 0 && links.every((href) => href === "https://docs.example/page"), links.join(" "));
    assert.equal(await page.locator(".items img, .items iframe, .items script").count(), 0);
    await answer.locator(".hidden-char", { hasText: "\\u{202e}" }).waitFor();
    await answer.locator(".hidden-char", { hasText: "\\u{200b}×3" }).waitFor();
    // Output: escapes that set titles, clear the screen, make links and hide text; a bomb of colours.
    const field = page.getByRole("textbox", { name: "Start a turn" });
    const bomb = `for i in $(seq 3000); do printf '\\033[3%dm<b>%d' $((i % 8)) $i; done`;
    await field.fill(`run printf '\\033]0;title\\007\\033[2J\\033]8;;javascript:alert(1)\\033\\\\link\\033]8;;\\033\\\\\\033[8mconcealed\\033[0m\\033[30;40mdark\\033[0m\\n'; ${bomb}`);
    await field.press("Enter");
    const output = page.locator(".terminal").last();
    await output.filter({ hasText: "linkconcealeddark" }).waitFor();
    await page.locator(".tool.command").last().locator(".st-completed").waitFor();
    assert.ok((await output.locator("span").count()) < 5_000);
    assert.equal(await output.locator("b, a").count(), 0);
    await close();
  },

  async "a new task starts from the form"(stage) {
    const { page, close } = await open(stage, "/new");
    await connected(page);
    await page.getByLabel("What is to be done").fill("say from the form");
    await page.getByLabel("Folder on the server").fill(stage.host.workspace);
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator(".from-agent", { hasText: "from the form" }).waitFor();
    await close();
  },

  async "the host page shows what this server is"(stage) {
    const { page, close } = await open(stage, "/host");
    await page.locator(".models li", { hasText: "offline" }).waitFor();
    await page.locator(".facts", { hasText: "operations" }).waitFor();
    await close();
  },

  async "the demo has tasks in several states"(stage) {
    const folder = mkdtempSync(join(tmpdir(), "oarlock-console-demo-"));
    const demo = spawn(stage.binary, ["demo", "--console", "--port", "0"], { env: { ...process.env, TMPDIR: folder }, stdio: ["ignore", "pipe", "inherit"] });
    const ended = new Promise((resolve) => demo.once("exit", resolve));
    try {
      const url = await new Promise((resolve, reject) => {
        createInterface({ input: demo.stdout }).on("line", (line) => line.trim().startsWith("http://") && resolve(line.trim()));
        void ended.then((code) => reject(new Error(`the demo ended with ${code}`)));
      });
      const { page, close } = await open({ ...stage, host: { url } });
      for (const [state, name] of [["idle", "Correct the greeting"], ["waiting", "Publish release"], ["running", "Watch the tests"]]) {
        await page.locator(".row", { hasText: name }).locator(`.s-${state}`).waitFor();
      }
      await page.getByRole("link", { name: "Watch the tests" }).click();
      await page.locator(".terminal .a-f2", { hasText: "ok" }).first().waitFor();
      await close();
    } finally {
      demo.kill("SIGINT");
      assert.equal(await ended, 0);
      rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    }
  },
};
