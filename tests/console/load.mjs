// Long lists, long lines and fast deltas. The server is a script inside the page: no machine is too slow to play it.
import assert from "node:assert/strict";

import { looked, open } from "./browser.mjs";
import { eventually, STRICT } from "./host.mjs";

const TASKS = 10_000;
const ITEMS = 20_000;
const LINE = 50 * 1024 * 1024;
/** Rows of a list that may be in the page, whatever its length. */
const MOST_ROWS = 200;
const MOST_NODES = 10_000;
/** Most frames of a list that is scrolled come within this time; a busy machine may need longer. */
const FRAME_MS = STRICT ? 50 : 2_000;
const BEHIND_MS = STRICT ? 250 : 30_000;
const THREAD = "00000000-0000-7000-8000-000000000001";

/** Runs in the page, in place of its websocket: a host with many tasks and one long thread. */
function scriptedSocket({ TASKS, ITEMS, LINE, THREAD }) {
  const message = (id, text) => ({ type: "agentMessage", id, text, phase: null, memoryCitation: null });
  const command = (id, output) => ({
    type: "commandExecution", id, command: "cat big", cwd: "/work", processId: null, source: "agent", status: "completed",
    commandActions: [], aggregatedOutput: output, exitCode: 0, durationMs: 1,
  });
  const turn = (id, items, status) => ({ id, items, status, error: null, startedAt: 1, completedAt: null, durationMs: null });
  const task = (index) => ({
    id: `00000000-0000-7000-8000-${String(index).padStart(12, "0")}`, name: `Task ${index}`, preview: "", state: "idle", hasRuntime: false,
    cwd: "/work", labels: {}, isArchived: false, epoch: 1, waitingOperations: 0, createdAtMs: 1e12, updatedAtMs: 1e12 + index,
  });
  const items = () => Array.from({ length: ITEMS }, (_, index) => message(`m${index}`, `Message **${index}**\n\nwith two paragraphs`));
  const bomb = "\u001b[31mred\u001b[42;1mgreen\u001b]0;title\u0007\u001b[0m".repeat(100_000);
  const hostile = () => [command("bomb", bomb), command("big", "x".repeat(LINE)), message("end", "\u200b".repeat(1_000_000))];
  /** Arguments whose indented form, which is the one that is drawn, is longer than what is sent. */
  const deep = () => ({
    operationId: "op", threadId: THREAD, taskId: THREAD, state: "proposed", type: "function", tool: "deploy", namespace: null, itemId: "i",
    agentPath: ["root"], arguments: { list: Array.from({ length: 2_000 }, (_, at) => (at === 1_000 ? "in the middle" : [at])) }, argumentsDigest: "d",
    effects: "unknown", availableDecisions: ["approve", "reject"], reason: null, attempt: 0, decision: null, createdAtMs: 1, updatedAtMs: 1,
  });
  const answers = {
    initialize: () => ({ userAgent: "script", codexHome: "/", platformFamily: "unix", platformOs: "linux", capabilities: { host: { version: 1, features: [] } } }),
    "task/list": ({ cursor }) => {
      const from = Number(cursor ?? 0);
      const data = Array.from({ length: 200 }, (_, index) => task(TASKS - from - index));
      return { data, nextCursor: from + 200 < TASKS ? String(from + 200) : null };
    },
    "operation/list": () => ({ data: location.search === "?deep" ? [deep()] : [], nextCursor: null }),
    "thread/resume": () => ({
      thread: { id: THREAD, name: "Long", preview: "", status: { type: "idle" }, cwd: "/work", turns: [] },
      model: "script", approvalPolicy: "never", sandbox: {}, cwd: "/work",
    }),
    "thread/turns/list": () => ({ data: [turn("t1", [], "completed")], nextCursor: null, backwardsCursor: null }),
    // The newest first, a hundred at a time, as a server does.
    "thread/items/list": ({ cursor }) => {
      window.pages = (window.pages ?? 0) + 1;
      const all = (window.all ??= location.search === "?hostile" ? hostile() : items());
      const end = Number(cursor ?? all.length);
      const data = all.slice(Math.max(0, end - 100), end).reverse().map((item) => ({ turnId: "t1", item }));
      return { data, nextCursor: end > 100 ? String(end - 100) : null, backwardsCursor: null };
    },
  };
  window.WebSocket = class {
    static OPEN = 1;
    readyState = 1;
    constructor() {
      window.tell = (method, params) => this.onmessage({ data: JSON.stringify({ method, params }) });
      setTimeout(() => this.onopen());
    }
    send(text) {
      const { id, method, params } = JSON.parse(text);
      if (id !== undefined) setTimeout(() => this.onmessage({ data: JSON.stringify({ id, result: answers[method]?.(params) ?? { data: [] } }) }));
    }
    close() {}
  };
  /** `perSecond` deltas in each second, for so many seconds; how far behind the page was at the end, in milliseconds. */
  window.flood = async (perSecond, seconds) => {
    const at = { threadId: THREAD, turnId: "t2" };
    window.tell("turn/started", { threadId: THREAD, turn: turn("t2", [], "inProgress") });
    window.tell("item/started", { ...at, item: message("live", ""), startedAtMs: 1 });
    const begun = performance.now();
    let sent = 0;
    while (sent < perSecond * seconds) {
      const due = Math.min(perSecond * seconds, Math.floor(((performance.now() - begun) / 1_000) * perSecond));
      for (; sent < due; sent += 1) window.tell("item/agentMessage/delta", { ...at, itemId: "live", delta: `${sent} ` });
      await new Promise((resolve) => setTimeout(resolve, 4));
    }
    const last = performance.now();
    const isShown = () => [...document.querySelectorAll(".from-agent")].at(-1)?.textContent.includes(` ${sent - 1} `);
    while (!isShown()) await new Promise((resolve) => requestAnimationFrame(resolve));
    return { took: last - begun, behind: performance.now() - last };
  };
}

async function scripted(stage, hash, search = "") {
  const opened = await open(stage, "/host");
  await opened.page.addInitScript(scriptedSocket, { TASKS, ITEMS, LINE, THREAD });
  await opened.page.goto(`${stage.host.url}?${search}#${hash}`);
  return opened;
}

/** In the page: scrolls a list by its own height in each of some frames. How long the frames took, in milliseconds. */
async function scrollFrames([selector, direction, frames]) {
  const list = document.querySelector(selector);
  const times = [];
  let before = await new Promise((resolve) => requestAnimationFrame(resolve));
  while (times.length < frames) {
    list.scrollTop += direction * list.clientHeight;
    const now = await new Promise((resolve) => requestAnimationFrame(resolve));
    times.push(now - before);
    before = now;
  }
  return times.sort((a, b) => a - b);
}

/** Scrolls, says how it went, and that no more of the list is in the page than can be seen. */
async function scrollSmoothly(page, selector, direction, name) {
  const times = await page.evaluate(scrollFrames, [selector, direction, 120]);
  const [middle, most] = [times[60], times[113]].map(Math.round);
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  console.log(`   ${name}: half of the frames within ${middle} ms, 95 % within ${most} ms; ${nodes} nodes in the page`);
  assert.ok(most < FRAME_MS, `95 % of the frames within ${most} ms`);
  assert.ok(nodes < MOST_NODES, `${nodes} nodes`);
}

export const loadChecks = {
  async "ten thousand tasks are a few rows of the page"(stage) {
    const { page, close } = await scripted(stage, "/tasks", "tasks");
    await page.locator(".chips b", { hasText: String(TASKS) }).first().waitFor();
    assert.ok((await page.locator(".row").count()) < MOST_ROWS);
    await scrollSmoothly(page, ".table .virtual", 1, `${TASKS} tasks`);
    assert.ok((await page.locator(".row").count()) < MOST_ROWS);
    await page.locator(".table .virtual").evaluate((list) => (list.scrollTop = list.scrollHeight));
    await page.getByRole("link", { name: "Task 1", exact: true }).waitFor();
    await page.getByRole("searchbox").fill("Task 4321");
    await page.getByRole("link", { name: "Task 4321" }).waitFor();
    await close();
  },

  async "twenty thousand items scroll"(stage) {
    const { page, close } = await scripted(stage, `/task/${THREAD}`, "long");
    await page.locator(".from-agent strong", { hasText: String(ITEMS - 1) }).waitFor();
    assert.ok((await page.locator(".item").count()) < MOST_ROWS);
    assert.ok((await page.evaluate(() => window.pages)) <= 2, "no more is read than is near the screen");
    // Upwards by the wheel: what is before comes by itself, and what is read stays where it is.
    await page.locator(".items").hover();
    const shown = () => page.evaluate(() => {
      const box = document.querySelector(".items").getBoundingClientRect();
      const numbers = [...document.querySelectorAll(".from-agent strong")].filter((one) => {
        const { top } = one.getBoundingClientRect();
        return top >= box.top && top < box.bottom;
      });
      return numbers.map((one) => Number(one.textContent));
    });
    let [last, wheels] = [ITEMS, 0];
    while (last > ITEMS - 300) {
      await page.mouse.wheel(0, -400);
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      const [first, ...rest] = await shown();
      assert.ok(rest.every((number, index) => number === first + index + 1), `a gap after ${first}: ${rest}`);
      // Turns of the wheel may come together on a busy machine.
      assert.ok(first <= last && first > last - 120, `from ${last} to ${first} by one turn of the wheel`);
      last = first;
      assert.ok((wheels += 1) < 4_000, `stuck at ${last}`);
    }
    assert.ok((await page.evaluate(() => window.pages)) <= 8, "pages that nobody looks at were read");
    // To the very beginning, as fast as it comes.
    await page.locator(".items").evaluate(async (list) => {
      while (document.querySelector(".from-agent strong")?.textContent !== "0") {
        list.scrollTop = 0;
        await new Promise((resolve) => setTimeout(resolve));
      }
    });
    await page.getByText("Turn 1", { exact: true }).waitFor();
    assert.ok((await page.locator(".item").count()) < MOST_ROWS);
    await scrollSmoothly(page, ".items", 1, `${ITEMS} items`);
    assert.ok((await page.locator(".item").count()) < MOST_ROWS);
    await page.keyboard.press("f");
    await page.locator(".from-agent strong", { hasText: String(ITEMS - 1) }).waitFor();
    await close();
  },

  async "a line of 50 MB, a bomb of escapes and a million invisible characters do no harm"(stage) {
    const { page, close } = await scripted(stage, `/task/${THREAD}`, "hostile");
    await page.locator(".clip", { hasText: "characters not shown" }).first().waitFor();
    await page.locator(".hidden-char", { hasText: "×" }).first().waitFor();
    await eventually(async () => (await page.locator(".clip", { hasText: "characters not shown" }).count()) >= 2, "both outputs");
    assert.ok((await page.evaluate(() => document.body.textContent.length)) < 200_000);
    assert.ok((await page.evaluate(() => document.querySelectorAll("*").length)) < MOST_NODES);
    assert.notEqual(await page.title(), "title");
    await close();
  },

  async "what is cut cannot be approved"(stage) {
    const { page, close } = await scripted(stage, "/inbox", "deep");
    const approve = page.getByRole("button", { name: /^Approve a/ });
    await page.locator(".card .cut", { hasText: "characters not shown" }).waitFor();
    await looked(page);
    assert.ok(await approve.isDisabled());
    await page.keyboard.press("a");
    await page.locator(".toast", { hasText: "Show all of it first" }).waitFor();
    await page.getByRole("button", { name: "Show all of it" }).click();
    await page.locator(".card .exact", { hasText: "in the middle" }).waitFor();
    assert.equal(await page.locator(".card .cut").count(), 0);
    assert.ok(await approve.isEnabled());
    await close();
  },

  async "2,000 deltas a second are shown"(stage) {
    const { page, close } = await scripted(stage, `/task/${THREAD}`, "long");
    await page.locator(".from-agent strong", { hasText: String(ITEMS - 1) }).waitFor();
    const { took, behind } = await page.evaluate(() => window.flood(2_000, 2));
    console.log(`   4000 deltas in ${Math.round(took)} ms, the last one shown ${Math.round(behind)} ms later`);
    assert.ok(took < 2_000 + BEHIND_MS, `the page had no time to hear them: ${took} ms`);
    assert.ok(behind < BEHIND_MS, `the last delta was shown ${behind} ms late`);
    await close();
  },
};
