// People with different roles, agents of a task, what it costs, and a thread that is longer than a page. On a host of its own,
// with a model that starts agents and a table of prices.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { connected, looked, open, seriousForAxe, text } from "./browser.mjs";
import { eventually, TestHost } from "./host.mjs";
import { TestModel } from "./model.mjs";

const ROLES = ["viewer", "approver", "operator"];
/** Buttons that only change what is shown. */
const HARMLESS = /^Used: .* Show it over time$|^(Keys|Follow|Side by side|all|waiting|running|failed|suspended|idle|queued|… |\d+ agents)/;

export async function withCrew(stage, check, provider = "test") {
  const model = new TestModel();
  await model.start();
  const host = new TestHost(stage.binary, "host", provider);
  const hash = (word) => createHash("sha256").update(word).digest("hex");
  const tokens = join(host.folder, "tokens");
  writeFileSync(tokens, ROLES.map((role) => `${role}-name ${role} sha256:${hash(`${role}-token`)}\n`).join(""));
  try {
    const start = () => host.start("--tokens", tokens, ...(provider === "test" ? model.flags : []));
    await start();
    const client = await host.client();
    const there = { ...stage, host, client, start, model };
    await check(there, (role, hash = "/tasks") => open(there, `token=${role}-token&${hash}`));
    client.close();
  } finally {
    await host.close();
    model.close();
  }
}

async function buttons(page) {
  // A line of the queue is chosen, and nothing else.
  const wanted = page.getByRole("button").and(page.locator(":not(.queue-open)"));
  const names = await wanted.evaluateAll((all) => all.map((one) => one.getAttribute("aria-label") ?? one.textContent.trim()));
  return names.filter((name) => !HARMLESS.test(name));
}

/** Turns the wheel until a message is on the screen, and the list has come to rest. */
async function scrollTo(page, number) {
  await page.locator(".items").hover();
  const found = page.locator(".from-agent strong", { hasText: new RegExp(`^${number}$`) });
  await eventually(() => found.count().then((count) => count > 0 || page.mouse.wheel(0, 800)), `message ${number}`);
  await found.scrollIntoViewIfNeeded();
  await atRest(page);
}

/** Every row that is drawn has been measured, and nothing moves any more. */
async function atRest(page) {
  let [before, times] = ["", 0];
  await eventually(async () => {
    const now = JSON.stringify(await placeOf(page));
    times = now === before ? times + 1 : 0;
    before = now;
    return times === 5;
  }, "a list at rest");
}

/** The rows on the screen, and where the first of them begins. */
async function placeOf(page) {
  return page.locator(".items").evaluate((list) => {
    const { top, bottom } = list.getBoundingClientRect();
    const seen = [...list.querySelectorAll("[data-key]")].map((row) => [row.dataset.key, row.getBoundingClientRect()]);
    const inside = seen.filter(([, at]) => at.bottom > top && at.top < bottom);
    return { keys: inside.map(([key]) => key), from: Math.round((inside[0]?.[1].top ?? top) - top) };
  });
}

/** The number of model requests, once the task and its agent rest and the host has counted each that the model saw. */
async function settled(client, model, task) {
  const counted = async () => (await client.ask("usage/list", { groupBy: "task" })).data[0]?.requests ?? 0;
  const rests = async () => {
    const { data } = await client.ask("task/list", { childrenOf: task });
    const states = [await client.task_state(task), ...data.map((agent) => agent.state)];
    return data.length === 1 && states.every((state) => state === "idle");
  };
  // The end of an agent may wake who started it: all of it holds, and goes on to.
  let times = 0;
  await eventually(async () => {
    const isOver = (await rests()) && (await counted()) === model.requests && model.requests >= 3;
    times = isOver ? times + 1 : 0;
    return times === 20;
  }, "the end of all model requests");
  return counted();
}

export const crewChecks = {
  async "a viewer sees no buttons, an approver decides, an operator starts"(stage) {
    await withCrew(stage, async ({ client, host }, as) => {
      const options = { approvalPolicy: "untrusted" };
      const task = await client.task(host.workspace, "run: touch by-role.txt", { ...options, name: "For each role" });
      for (const role of ["viewer", "approver"]) {
        const { page, close } = await as(role);
        await connected(page);
        await page.locator(".link.ok", { hasText: role }).waitFor();
        assert.equal(await page.getByRole("link", { name: "New task" }).count(), 0, role);
        await page.locator(".row", { hasText: "For each role" }).waitFor();
        assert.deepEqual(await buttons(page), [], `${role}, tasks`);
        await page.keyboard.press("n");
        await page.getByRole("heading", { name: "Tasks" }).waitFor();
        await page.keyboard.press("h");
        await page.locator(".facts", { hasText: role }).waitFor();
        assert.deepEqual(await buttons(page), [], `${role}, host`);
        for (const hash of ["/inbox", `/task/${task}`]) {
          await page.evaluate((to) => (location.hash = to), hash);
          await page.locator(".card .exact", { hasText: "touch by-role.txt" }).waitFor();
          const isViewer = role === "viewer";
          assert.equal((await buttons(page)).length > 0, !isViewer, `${role}, ${hash}: ${await buttons(page)}`);
          assert.equal(await page.locator("textarea, .composer, .actions").count(), 0, `${role}, ${hash}`);
          assert.equal(await page.getByRole("button", { name: /^Approve a/ }).count(), isViewer ? 0 : 1);
          if (!isViewer) continue;
          // Nor do its keys do anything.
          for (const key of ["a", "s", "d", "x"]) await page.keyboard.press(key);
          await page.locator(".card", { hasText: "does not decide" }).waitFor();
          assert.equal(await page.locator('input[type="checkbox"][aria-label="Select"], input[type="text"]').count(), 0);
        }
        await close();
      }
      assert.equal(await client.task_state(task), "waiting");
      const approver = await as("approver", "/inbox");
      await approver.page.locator(".card .exact", { hasText: "touch by-role.txt" }).waitFor();
      await looked(approver.page);
      await approver.page.keyboard.press("a");
      await approver.page.locator(".all-clear").waitFor();
      await approver.close();
      const isOver = ({ method, params }) => method === "operation/updated" && params.operation.decision?.by === "approver-name";
      await client.until(isOver, "the decision of the approver");
      const operator = await as("operator", `/task/${task}`);
      await operator.page.locator(".from-agent", { hasText: "It is done." }).waitFor();
      await operator.page.getByRole("textbox", { name: "Start a turn" }).fill("say: hello from the operator");
      await operator.page.keyboard.press("Enter");
      await operator.page.locator(".from-agent", { hasText: "hello from the operator" }).waitFor();
      await operator.close();
    });
  },

  async "an approver sees and approves a patch with no process behind it"(stage) {
    const check = async ({ client, host }, as) => {
      writeFileSync(join(host.workspace, "notes.txt"), "one\ntwo\n");
      const task = await client.task(host.workspace, "replace two with three in notes.txt", { approvalPolicy: "untrusted", name: "Suspended" });
      await client.ask("task/suspend", { threadId: task });
      for (const role of ["viewer", "approver"]) {
        const { page, close } = await as(role, "/inbox");
        await page.locator(".card .diff-row.removed", { hasText: "two" }).waitFor();
        await page.locator(".card .diff-row.added", { hasText: "three" }).waitFor();
        assert.deepEqual((await client.ask("thread/loaded/list", {})).data, [], `${role}: nothing was started to look at it`);
        assert.equal(await client.task_state(task), "suspended");
        if (role === "approver") {
          await looked(page);
          await page.keyboard.press("a");
          await page.locator(".all-clear").waitFor();
        }
        await close();
      }
      const isOver = ({ method, params }) => method === "operation/updated" && params.operation.taskId === task && params.operation.state === "finished";
      await client.until(isOver, "the end of the patch");
      assert.equal(readFileSync(join(host.workspace, "notes.txt"), "utf8"), "one\nthree\n");
    };
    await withCrew(stage, check, "offline");
  },

  async "agents are shown beneath their task, with what all of them cost"(stage) {
    await withCrew(stage, async ({ client, host, model }, as) => {
      const task = await client.task(host.workspace, "agent: say: nothing was found", { name: "Ask an agent" });
      const { page, context, close } = await as("operator");
      const row = page.locator(".row", { has: page.getByRole("link", { name: "Ask an agent" }) });
      await row.locator(".model", { hasText: "scripted" }).waitFor();
      // Requests of 1,000 tokens for 100 a million and 500 for 1,000: each costs 0.60. How many there are is for the host to
      // say: an agent may end before or after who started it asks again.
      const requests = await settled(client, model, task);
      const [tokens, cost] = [`${(requests * 1.5).toFixed(1)}k`, (requests * 0.6).toFixed(2)];
      await row.locator(".cost", { hasText: cost }).waitFor();
      await row.getByRole("button", { name: "1 agents" }).click();
      const agent = page.locator(".row", { has: page.locator(".depth-1") });
      await agent.getByRole("link", { name: /nothing was found/ }).waitFor();
      assert.deepEqual(await seriousForAxe(stage, context, page), [], "tasks with agents");
      // By keys: folded, unfolded, opened.
      await page.keyboard.press("Escape");
      await page.locator("body").click({ position: { x: 5, y: 400 } });
      await page.keyboard.press("ArrowLeft");
      await agent.waitFor({ state: "detached" });
      await page.keyboard.press("ArrowRight");
      await agent.waitFor();
      await page.keyboard.press("j");
      await page.keyboard.press("Enter");
      await page.locator(".from-agent", { hasText: "nothing was found" }).waitFor();
      await page.getByRole("link", { name: /an agent of/ }).click();
      await page.getByRole("heading", { name: "Ask an agent" }).waitFor();
      await page.locator(".used", { hasText: `${tokens} tokens · ${cost}` }).waitFor();
      await page.getByRole("img", { name: `${tokens} tokens, cost ${cost}, by minute` }).waitFor();
      // From the item that started it, too.
      await page.locator(".agents a").first().click();
      await page.locator(".from-agent", { hasText: "nothing was found" }).waitFor();
      assert.notEqual(await page.evaluate(() => location.hash), `#/task/${task}`);
      await page.keyboard.press("h");
      const day = new Date().toISOString().slice(0, 10);
      for (const [name, line] of [["day", day], ["model", "scripted"], ["provider", "test"]]) {
        const found = await text(page.getByRole("group", { name: `Usage by ${name}` }).locator("tr", { hasText: line }));
        assert.deepEqual(found.split(/\s+/), [line, `${requests}`, `${requests}.0k`, `${requests * 200}`, `${(requests / 2).toFixed(1)}k`, cost], name);
      }
      await page.getByRole("group", { name: "Hosts of this store" }).locator("tr", { hasText: "this one" }).filter({ hasText: "does not expire" }).waitFor();
      await page.getByText("Every task works on this machine").waitFor();
      assert.deepEqual(await seriousForAxe(stage, context, page), [], "the host's usage");
      await close();
    });
  },

  async "reasoning is folded"(stage) {
    await withCrew(stage, async ({ client, host }, as) => {
      const task = await client.task(host.workspace, "think: **First** this, then that.", { name: "Thinks" });
      const { page, close } = await as("viewer", `/task/${task}`);
      const fold = page.locator("details.reasoning");
      await fold.locator(".line", { hasText: "First this" }).waitFor();
      assert.equal(await fold.locator(".markdown").count(), 0);
      await fold.locator("summary").click();
      await fold.locator(".markdown strong", { hasText: "First" }).waitFor();
      await close();
    });
  },

  async "a thread longer than a page is read as far as it is looked at"(stage) {
    await withCrew(stage, async ({ client, host, start }, as) => {
      const task = await client.task(host.workspace, "say: the beginning", { name: "Long" });
      await client.ask("turn/start", { threadId: task, input: [{ type: "text", text: "many: 450" }] });
      const isOver = (done) => client.heard.filter(({ method, params }) => method === "turn/completed" && params.threadId === task).length >= done;
      await client.until(() => isOver(2), "the end of the long turn");
      // With no process behind it, none is started for whoever looks.
      await client.ask("task/suspend", { threadId: task });
      const asked = [];
      const { page, close } = await as("viewer");
      page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => asked.push(JSON.parse(payload))));
      await page.reload();
      await page.evaluate((id) => (location.hash = `/task/${id}`), task);
      await page.locator(".from-agent strong", { hasText: "449" }).waitFor();
      const pages = () => asked.filter(({ method }) => method === "thread/items/list").length;
      assert.ok(pages() <= 2, `${pages()} pages were read`);
      assert.ok(!asked.some(({ method, params }) => method === "thread/resume" && params.excludeTurns !== true));
      await page.locator(".items").hover();
      const beginning = page.locator(".from-agent", { hasText: "the beginning" });
      await eventually(() => beginning.count().then((count) => count > 0 || page.mouse.wheel(0, -1_500)), "the beginning");
      await page.getByText("Turn 1", { exact: true }).waitFor();
      assert.equal(pages(), 5, "453 items are five pages");
      const numbers = await page.locator(".from-agent strong").evaluateAll((all) => all.map((one) => Number(one.textContent)));
      assert.deepEqual(numbers, numbers.map((_, index) => index));
      assert.deepEqual((await client.ask("thread/loaded/list", {})).data, [], "nothing was started");
      // A host that is killed changes nothing of what is read: at the beginning, and in the middle of the thread.
      for (const from of [undefined, "220"]) {
        if (from === undefined) await atRest(page);
        else await scrollTo(page, from);
        const [place, read] = [await placeOf(page), pages()];
        await host.kill();
        await page.locator(".banner", { hasText: "connection is lost" }).waitFor();
        await start();
        await connected(page);
        await page.locator(".banner").waitFor({ state: "detached" });
        // One page of the end is read, which is known already.
        await eventually(() => pages() > read, "the end to be read");
        await atRest(page);
        assert.deepEqual(await placeOf(page), place, "whoever reads keeps the place");
        assert.equal(pages(), read + 1);
      }
      await page.keyboard.press("f");
      await page.locator(".from-agent strong", { hasText: "449" }).waitFor();
      await close();
    });
  },
};
