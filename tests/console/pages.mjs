// Each page, a live turn, hostile content, the headers.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { connected, open, sent, text } from "./browser.mjs";
import { startDemo, STRICT, TestHost } from "./host.mjs";
import { takeScreenshots } from "./screenshots.mjs";

/** Where the machine has other things to do, no more than that the page is drawn at all. */
const FIRST_PAINT_MS = STRICT ? 300 : 20_000;
const PAINTS = 5;

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** In the page: when it first showed anything. */
function firstPaint() {
  const found = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  return new Promise((resolve) => {
    const look = () => (found() === undefined ? requestAnimationFrame(look) : resolve(found()));
    look();
  });
}

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
    // Each beside a page of one word: what else this machine does at the moment delays both.
    const [paints, bare, shown] = [[], [], []];
    while (paints.length < PAINTS) {
      const { page, close } = await open(stage);
      await connected(page);
      paints.push(await page.evaluate(firstPaint));
      await page.locator(".row:not(.head)").first().waitFor();
      shown.push(await page.evaluate(() => performance.now()));
      await page.goto("data:text/html,word");
      bare.push(await page.evaluate(firstPaint));
      await close();
    }
    const list = (times) => times.map(Math.round).join(", ");
    console.log(`   first paint after ${list(paints)} ms, of one word after ${list(bare)} ms, tasks after ${Math.round(median(shown))} ms`);
    // A page that the tests serve themselves comes by a longer way.
    if (process.env.CONSOLE_DIST !== undefined) return;
    assert.ok(median(paints) < FIRST_PAINT_MS, `first paint after ${median(paints)} ms, and not within ${FIRST_PAINT_MS}`);
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
    // The last words come before the end of the turn.
    await page.locator(".turn-mark").last().locator(".status", { hasText: "completed" }).waitFor();
    assert.equal(await page.getByRole("textbox", { name: "Start a turn" }).inputValue(), "");
    await page.keyboard.press("Escape");
    await page.keyboard.press("w");
    await page.locator(".raw", { hasText: '**bold** and `code`"' }).last().waitFor();
    await page.keyboard.press("w");
    await page.locator(".raw").first().waitFor({ state: "detached" });
    // Plans are read again with their turns.
    await page.reload();
    await page.locator(".plan li", { hasText: "write notes" }).waitFor();
    await page.locator(".plan li", { hasText: "two" }).waitFor();
    assert.equal(await page.locator(".plan").count(), 2);
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

  async "a task that is not there says so, and offers no buttons that cannot work"(stage) {
    const { page, close } = await open(stage, "/task/00000000-0000-7000-8000-000000000001");
    await page.getByRole("alert").filter({ hasText: "cannot be read" }).waitFor();
    assert.equal(await page.locator(".composer, .actions").count(), 0);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("alert").filter({ hasText: "cannot be read" }).waitFor();
    await page.getByRole("alert").getByRole("link", { name: "All tasks" }).click();
    await page.getByRole("heading", { name: "Tasks" }).waitFor();
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

  async "a task is renamed, copied, shortened, put away and taken back"(stage) {
    const id = await stage.client.task(stage.host.workspace, "say to be moved", { name: "Before" });
    const { page, close } = await open(stage, `/task/${id}`);
    await page.locator(".from-agent", { hasText: "to be moved" }).waitFor();
    const menu = page.getByRole("button", { name: "More" });
    // It closes by Escape and by a click elsewhere.
    await menu.click();
    await page.getByRole("menu").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("menu").waitFor({ state: "detached" });
    await menu.click();
    await page.locator(".items").click();
    await page.getByRole("menu").waitFor({ state: "detached" });
    const choose = async (name) => {
      await menu.click();
      await page.getByRole("menuitem", { name }).click();
    };
    await choose("Rename");
    await page.getByRole("textbox", { name: "Name" }).fill("After");
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByRole("heading", { name: "After" }).waitFor();
    const field = page.getByRole("textbox", { name: "Start a turn" });
    await field.fill("run until [ -e resumed ]; do sleep 0.05; done; echo went on");
    await field.press("Enter");
    await page.getByRole("button", { name: "Interrupt" }).waitFor();
    await page.getByRole("button", { name: "Interrupt" }).click();
    await page.locator(".turn-mark.interrupted").waitFor();
    await page.getByRole("button", { name: "Suspend" }).click();
    await page.getByRole("button", { name: "Suspend" }).waitFor({ state: "detached" });
    await choose("Compact");
    await page.locator(".note", { hasText: "replaced by a summary" }).waitFor();
    await choose("Fork");
    await page.waitForFunction((before) => !location.hash.includes(before), id);
    await page.locator(".from-agent", { hasText: "to be moved" }).waitFor();
    await page.evaluate((to) => (location.hash = `/task/${to}`), id);
    await page.getByRole("heading", { name: "After" }).waitFor();
    await choose("Archive");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await choose("Archive");
    await page.getByRole("dialog").getByRole("button", { name: "Archive" }).click();
    await page.getByRole("heading", { name: "Tasks" }).waitFor();
    await page.getByRole("link", { name: "After" }).waitFor({ state: "detached" });
    await page.getByLabel("archived").check();
    await page.getByRole("link", { name: "After" }).click();
    await page.locator(".from-agent", { hasText: "to be moved" }).waitFor();
    assert.equal(await page.locator(".composer").count(), 0);
    await page.getByRole("button", { name: "Unarchive" }).click();
    await page.locator(".composer").waitFor();
    await page.getByRole("button", { name: "More" }).waitFor();
    await close();
  },

  async "a picture is pasted into a new task and into the next turn"(stage) {
    const { page, close } = await open(stage, "/new");
    await connected(page);
    const paste = (field) => field.evaluate((element) => {
      const bytes = Uint8Array.from(atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="), (one) => one.charCodeAt(0));
      const given = new DataTransfer();
      given.items.add(new File([bytes], "dot.png", { type: "image/png" }));
      element.dispatchEvent(new ClipboardEvent("paste", { clipboardData: given, bubbles: true, cancelable: true }));
    });
    const prompt = page.getByLabel("What is to be done");
    await prompt.fill("say seen");
    await paste(prompt);
    await page.getByRole("button", { name: "Remove picture 1" }).waitFor();
    await page.getByLabel("Folder on the server").fill(stage.host.workspace);
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator(".from-you .picture").waitFor();
    await page.locator(".turn-mark.completed").waitFor();
    const next = page.getByRole("textbox", { name: "Start a turn" });
    await next.fill("say again");
    await paste(next);
    await page.getByRole("button", { name: "Remove picture 1" }).waitFor();
    await next.press("Enter");
    await page.locator(".turn-mark.completed").nth(1).waitFor();
    assert.equal(await page.locator(".from-you .picture").count(), 2);
    assert.equal(await page.locator(".thumbs").count(), 0);
    await close();
  },

  async "the host page shows what this server is"(stage) {
    const { page, close } = await open(stage, "/host");
    await page.locator(".models li", { hasText: "offline" }).waitFor();
    await page.locator(".facts", { hasText: "operations" }).waitFor();
    await close();
  },

  async "a placement is shown with its task, and chosen for a new one"(stage) {
    const host = new TestHost(stage.binary);
    try {
      await host.start("-c", `placements.side={backend="local",folder="${host.scratch}"}`);
      const client = await host.client();
      const id = await client.task(undefined, "say from the side", { name: "Beside", placement: "side" });
      const { page, close } = await open({ ...stage, host }, "/tasks");
      await page.locator(".row", { hasText: "Beside" }).locator(".folder", { hasText: "side" }).waitFor();
      await page.keyboard.press("h");
      const line = page.getByRole("group", { name: "Placements" }).locator("tr", { hasText: "side" });
      await line.locator(".place-ready").waitFor();
      await line.getByRole("link", { name: "Beside" }).click();
      await page.locator(".meta", { hasText: "place" }).locator("dd", { hasText: "side" }).waitFor();
      await page.keyboard.press("n");
      await page.getByLabel("What is to be done").fill("say started there");
      await page.getByLabel("Placement").fill("side");
      await page.keyboard.press("Control+Enter");
      await page.locator(".from-agent", { hasText: "started there" }).waitFor();
      const { data } = await client.ask("task/list", {});
      assert.deepEqual(data.map((task) => typeof task.placementId), ["string", "string"]);
      assert.ok(data.some((task) => task.id === id));
      // A decision names the place, too: the same folder may be there in several.
      await client.task(undefined, "run touch beside.txt", { name: "Waits beside", placement: "side", approvalPolicy: "untrusted" });
      await page.evaluate(() => (location.hash = "/inbox"));
      await page.locator(".card .exact", { hasText: "beside.txt" }).waitFor();
      await page.locator(".card .facts > div", { hasText: "place" }).locator("dd", { hasText: "side" }).waitFor();
      await close();
      client.close();
    } finally {
      await host.close();
    }
  },

  async "a new task leaves asking and the sandbox to the server, so that it works in a container"(stage) {
    const host = new TestHost(stage.binary);
    const box = join(host.scratch, "box");
    mkdirSync(box);
    try {
      await host.start("-c", `placements.box={backend="command",argv=["env"],workspace="${box}",environment=["PATH"]}`);
      const client = await host.client();
      const { page, close } = await open({ ...stage, host }, "/new");
      await connected(page);
      const asked = sent(page, "thread/start");
      await page.reload();
      await connected(page);
      await page.locator('#places option[value="box"]').waitFor({ state: "attached" });
      await page.getByLabel("What is to be done").fill("say from the box");
      await page.getByLabel("Placement").fill("box");
      await page.keyboard.press("Control+Enter");
      await page.locator(".from-agent", { hasText: "from the box" }).waitFor();
      assert.deepEqual(asked.map(({ approvalPolicy, sandbox }) => [approvalPolicy, sandbox]), [[undefined, undefined]]);
      await close();
      client.close();
    } finally {
      await host.close();
    }
  },

  async "what the sandbox stopped comes with the way out"(stage) {
    const given = { approvalPolicy: "never", sandbox: "workspace-write", name: "Stopped by the sandbox" };
    const id = await stage.client.task(stage.host.workspace, "run touch /usr/of-the-sandbox", given);
    const { page, close } = await open(stage, `/task/${id}`);
    await page.locator(".advice", { hasText: "may write to its folder alone" }).waitFor();
    await close();
  },

  async "an app-server's tasks are those of exec as well"(stage) {
    const server = new TestHost(stage.binary, "app-server");
    try {
      const env = { ...process.env, OARLOCK_HOME: server.home, HOME: server.home };
      execFileSync(stage.binary, ["exec", "--skip-git-repo-check", "--provider", "offline", "say from exec"], { cwd: server.workspace, env, stdio: "ignore" });
      await server.start();
      const { page, close } = await open({ ...stage, host: server }, "/tasks");
      await page.locator(".row", { hasText: "from exec" }).waitFor();
      await close();
    } finally {
      await server.close();
    }
  },

  async "the demo has tasks in all states"(stage) {
    const demo = await startDemo(stage.binary);
    let over;
    try {
      const { page, close } = await open({ ...stage, host: demo });
      const states = [
        ["idle", "Correct the greeting"], ["idle", "Look at both ends"], ["failed", "Translate the greeting"], ["waiting", "Publish release"],
        ["waiting", "Choose where to publish"], ["suspended", "Tidy the build folder"], ["running", "Watch the tests"], ["waiting", "Copy the archive"],
      ];
      for (const [state, name] of states) {
        await page.locator(".row", { hasText: name }).locator(`.s-${state}`).waitFor();
      }
      await page.locator(".row", { hasText: "Look at both ends" }).getByRole("button", { name: "2 agents" }).waitFor();
      await page.getByRole("link", { name: "Watch the tests" }).click();
      await page.locator(".terminal .a-f2", { hasText: "ok" }).first().waitFor();
      await page.keyboard.press("i");
      await page.locator(".queue-line", { hasText: "outcome unknown" }).waitFor();
      await page.locator(".queue-line", { hasText: "Where is the release to be published?" }).waitFor();
      await close();
    } finally {
      over = await demo.close();
    }
    assert.deepEqual(over, { code: 0, left: [] }, "the demo ends well and leaves nothing behind");
  },

  async "the pictures of the docs are of each page, dark, light and on a phone"(stage) {
    const folder = mkdtempSync(join(tmpdir(), "oarlock-console-shots-"));
    try {
      const made = await takeScreenshots(stage, folder);
      const docs = readFileSync(new URL("../../docs/console.md", import.meta.url), "utf8");
      const kept = readdirSync(new URL("../../docs/console", import.meta.url)).sort();
      assert.deepEqual(readdirSync(folder).sort(), made.toSorted());
      assert.deepEqual(kept, made.toSorted(), "run tests/console/run.mjs BINARY --screenshots docs/console");
      for (const name of made) assert.ok(docs.includes(`console/${name}`), `docs/console.md does not show ${name}`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
