// A turn as it happens: opened in its middle, reloaded, cut off, shown as fast as it comes.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";

import { connected, open, text } from "./browser.mjs";
import { STRICT, TestHost } from "./host.mjs";
import { TestModel } from "./model.mjs";

/** Words of a held message. Half of them come before the test lets the rest go. */
const WORDS = 400;
const FLOOD = 6_000;
/** How late the last word may be shown. */
const BEHIND_MS = STRICT ? 500 : 60_000;

async function withModel(stage, check) {
  const model = new TestModel();
  await model.start();
  const host = new TestHost(stage.binary, "host", "test");
  try {
    await host.start(...model.flags);
    const client = await host.client();
    await check({ ...stage, host, client, model });
    client.close();
  } finally {
    await host.close();
    model.close();
  }
}

async function begin(client, cwd, wish, name) {
  const { thread } = await client.ask("thread/start", { cwd, approvalPolicy: "never", sandbox: "workspace-write" });
  await client.ask("thread/name/set", { threadId: thread.id, name });
  await client.ask("turn/start", { threadId: thread.id, input: [{ type: "text", text: wish }] });
  return thread.id;
}

/** Everything the last message says, word by word. */
function words(page) {
  return page.locator(".from-agent .body").last().innerText().then((all) => all.split(/\s+/).filter((word) => /^w\d+$/.test(word)));
}

function counted(number) {
  return Array.from({ length: number }, (_, at) => `w${at}`);
}

/** Keeps hold of the page's websockets, so that a test can cut them. */
function keepSockets() {
  window.sockets = [];
  const Real = window.WebSocket;
  window.WebSocket = class extends Real {
    constructor(...given) {
      super(...given);
      window.sockets.push(this);
    }
  };
}

export const liveChecks = {
  async "a retry says why"(stage) {
    const busy = http.createServer((_, response) => {
      response.writeHead(429, { "retry-after": "2", "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: "slow down, please" } }));
    });
    await new Promise((resolve) => busy.listen(0, "127.0.0.1", resolve));
    const host = new TestHost(stage.binary, "host", "busy");
    try {
      const url = `http://127.0.0.1:${busy.address().port}/v1`;
      await host.start("-c", `model_providers.busy={name="busy",base_url="${url}",request_max_retries=5,stream_max_retries=5}`, "-c", "model=scripted");
      const client = await host.client();
      const id = await begin(client, host.workspace, "say nothing", "Busy");
      const { page, close } = await open({ ...stage, host }, `/task/${id}`);
      await page.locator(".problem, .failure", { hasText: "slow down, please" }).waitFor();
      await page.locator(".problem", { hasText: /Reconnecting.*slow down, please/ }).waitFor();
      await close();
      client.close();
    } finally {
      await host.close();
      busy.close();
    }
  },

  async "what is being said is shown to who comes later, whole and once"(stage) {
    await withModel(stage, async (there) => {
      const { client, host, model } = there;
      const task = await begin(client, host.workspace, `hold: ${WORDS}`, "Held");
      const isHalf = ({ method, params }) => method === "item/agentMessage/delta" && params.delta.includes(`w${WORDS / 2 - 1} `);
      await client.until(isHalf, "half of the message");
      const { page, close } = await open(there, "/tasks");
      await page.addInitScript(keepSockets);
      await page.reload();
      await page.evaluate((id) => (location.hash = `/task/${id}`), task);
      const half = page.locator(".from-agent.growing", { hasText: `w${WORDS / 2 - 1}` });
      await half.waitFor();
      assert.deepEqual(await words(page), counted(WORDS / 2), "opened in the middle");
      await page.reload();
      await half.waitFor();
      assert.deepEqual(await words(page), counted(WORDS / 2), "reloaded");
      // The banner may be there for a moment only: a new connection is the proof.
      const again = page.waitForEvent("websocket");
      await page.evaluate(() => window.sockets.at(-1).close());
      await again;
      await connected(page);
      await page.locator(".banner").waitFor({ state: "detached" });
      await half.waitFor();
      model.go();
      await page.locator(".turn-mark.completed").waitFor();
      assert.deepEqual(await words(page), counted(WORDS), "cut off and gone on");
      assert.equal(await page.locator(".from-agent").count(), 1);
      assert.equal(await page.locator(".growing").count(), 0);
      await close();
    });
  },

  async "output of a command that runs is there after a reload"(stage) {
    const command = "for i in 1 2 3; do echo line-$i; done; until [ -e go-on ]; do sleep 0.05; done; echo line-4";
    await withModel(stage, async (there) => {
      const { client, host } = there;
      const task = await begin(client, host.workspace, `run: ${command}`, "Runs");
      const heard = () => client.heard.filter(({ method }) => method === "item/commandExecution/outputDelta").map(({ params }) => params.delta).join("");
      await client.until(() => heard().includes("line-3"), "output");
      const { page, close } = await open(there, `/task/${task}`);
      const output = page.locator(".terminal", { hasText: "line-3" });
      for (const way of ["opened", "reloaded"]) {
        await output.waitFor();
        assert.equal(await text(output), "line-1\nline-2\nline-3", way);
        if (way === "opened") await page.reload();
      }
      await page.locator(".tool.command .elapsed").waitFor();
      writeFileSync(join(host.workspace, "go-on"), "");
      await page.locator(".turn-mark.completed").waitFor();
      assert.equal(await text(output), "line-1\nline-2\nline-3\nline-4");
      await close();
    });
  },

  async "the end of what a command prints is kept in view, until somebody scrolls away from it"(stage) {
    const lines = (name) => `for i in $(seq 60); do echo ${name}-$i; done`;
    const wait = (file) => `until [ -e ${file} ]; do sleep 0.05; done`;
    await withModel(stage, async (there) => {
      const { client, host } = there;
      const task = await begin(client, host.workspace, `run: ${lines("first")}; ${wait("one")}; ${lines("second")}; ${wait("two")}; ${lines("third")}`, "Prints");
      const { page, close } = await open(there, `/task/${task}`);
      const output = page.locator(".terminal");
      const below = () => output.evaluate((box) => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight));
      for (const [last, file] of [["first-60", "one"], ["second-60", "two"]]) {
        await output.filter({ hasText: last }).waitFor();
        await page.waitForFunction(() => {
          const box = document.querySelector(".terminal");
          return box.scrollTop > 0 && box.scrollHeight - box.scrollTop - box.clientHeight < 2;
        });
        if (file === "two") {
          await output.evaluate((box) => (box.scrollTop = 40));
          await page.waitForFunction(() => document.querySelector(".terminal").scrollTop === 40);
        }
        writeFileSync(join(host.workspace, file), "");
      }
      await output.filter({ hasText: "third-60" }).waitFor();
      await page.locator(".turn-mark.completed").waitFor();
      assert.equal(await output.evaluate((box) => box.scrollTop), 40, "whoever reads above is left there");
      assert.ok((await below()) > 100);
      await close();
    });
  },

  async "a second window of an app-server sees what runs"(stage) {
    const server = new TestHost(stage.binary, "app-server");
    try {
      await server.start();
      const there = { ...stage, host: server };
      const one = await open(there, "/new");
      await connected(one.page);
      await one.page.getByLabel("What is to be done").fill("plan: look; wait\nrun echo first; until [ -e go-on ]; do sleep 0.05; done; echo second");
      await one.page.getByLabel("Folder on the server").fill(server.workspace);
      await one.page.getByLabel("Asks about").selectOption("never");
      await one.page.keyboard.press("Control+Enter");
      await one.page.locator(".terminal", { hasText: "first" }).waitFor();
      const two = await open(there, (await one.page.evaluate(() => location.hash)).slice(1));
      await two.page.locator(".terminal", { hasText: "first" }).waitFor();
      await two.page.locator(".plan li", { hasText: "look" }).waitFor();
      writeFileSync(join(server.workspace, "go-on"), "");
      for (const { page, close } of [one, two]) {
        await page.locator(".turn-mark.completed").waitFor();
        assert.equal(await text(page.locator(".terminal").first()), "first\nsecond");
        await close();
      }
    } finally {
      await server.close();
    }
  },

  async "a host passes 2,000 words a second on, and the page shows them"(stage) {
    await withModel(stage, async (there) => {
      const { client, host, model } = there;
      const task = await client.task(host.workspace, "say: ready", { name: "Fast" });
      const { page, close } = await open(there, `/task/${task}`);
      await page.locator(".from-agent", { hasText: "ready" }).waitFor();
      const isLast = ({ method, params }) => method === "item/agentMessage/delta" && params.delta.includes(`w${FLOOD - 1} `);
      const heard = client.until(isLast, "the last word").then(() => Date.now());
      await client.ask("turn/start", { threadId: task, input: [{ type: "text", text: `flood: ${FLOOD}` }] });
      await page.waitForFunction((last) => document.querySelector(".items")?.textContent.includes(last), `w${FLOOD - 1} `, { polling: "raf" });
      const shown = Date.now();
      const [behindModel, behindHost] = [shown - model.saidAllAt, shown - (await heard)];
      await page.locator(".task-head .s-idle").waitFor();
      assert.deepEqual(await words(page), counted(FLOOD));
      console.log(`   ${FLOOD} words in ${FLOOD / 2} ms; the last one was shown ${behindModel} ms after it was sent, ${behindHost} ms after a client without a page had it`);
      // How fast a debug build on a busy machine passes them on is not the page's doing; how soon the page shows them is.
      assert.ok(behindHost < BEHIND_MS, `${behindHost} ms behind`);
      await close();
    });
  },

  async "a turn that failed says so everywhere, and is tried again"(stage) {
    const words = "the key has no credit left";
    const id = await stage.client.task(stage.host.workspace, `fail with "${words}"`, { name: "Without credit" });
    const { page, close } = await open(stage);
    const row = page.locator(".row", { hasText: "Without credit" });
    await row.locator(".s-failed").waitFor();
    await row.locator(".row-problem", { hasText: words }).waitFor();
    await page.getByRole("button", { name: /^failed [1-9]/ }).click();
    await page.waitForFunction(() => document.querySelectorAll(".row:not(.head)").length === 1);
    await row.getByRole("link").click();
    const failure = page.locator(".failure");
    await failure.filter({ hasText: words }).waitFor();
    assert.ok(!(await text(failure.locator("p"))).includes("{"), "a sentence, and no JSON");
    // Read anew, it is the same.
    await page.reload();
    await failure.filter({ hasText: words }).waitFor();
    await failure.getByRole("button", { name: "Try again" }).click();
    await page.locator(".turn-mark.failed").nth(1).waitFor();
    assert.deepEqual(await page.locator(".from-you .body").allInnerTexts(), [`fail with "${words}"`, `fail with "${words}"`]);
    const { task } = await stage.client.ask("task/read", { threadId: id });
    assert.equal(task.lastTurn.status, "failed");
    await page.getByRole("textbox", { name: "Start a turn" }).fill("say better");
    await page.keyboard.press("Enter");
    await page.locator(".from-agent", { hasText: "better" }).waitFor();
    await failure.waitFor({ state: "detached" });
    await page.locator(".task-head .s-idle").waitFor();
    await close();
  },
};
