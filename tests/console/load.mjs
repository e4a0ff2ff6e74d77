// Long lists, long lines and fast deltas. The server is a script inside the page: no machine is too slow to play it.
import assert from "node:assert/strict";

import { open } from "./browser.mjs";

const TASKS = 10_000;
const ITEMS = 20_000;
const LINE = 50 * 1024 * 1024;
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
  const hostile = () => [command("big", "x".repeat(LINE)), message("end", "\u200b".repeat(1_000_000))];
  const answers = {
    initialize: () => ({ userAgent: "script", codexHome: "/", platformFamily: "unix", platformOs: "linux", capabilities: { host: { version: 1, features: [] } } }),
    "task/list": ({ cursor }) => {
      const from = Number(cursor ?? 0);
      const data = Array.from({ length: 200 }, (_, index) => task(TASKS - from - index));
      return { data, nextCursor: from + 200 < TASKS ? String(from + 200) : null };
    },
    "operation/list": () => ({ data: [], nextCursor: null }),
    "thread/resume": () => ({
      thread: { id: THREAD, name: "Long", preview: "", status: { type: "idle" }, cwd: "/work", turns: [turn("t1", location.search === "?hostile" ? hostile() : items(), "completed")] },
      model: "script", approvalPolicy: "never", sandbox: {}, cwd: "/work",
    }),
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
      if (id !== undefined) setTimeout(() => this.onmessage({ data: JSON.stringify({ id, result: answers[method]?.(params) ?? {} }) }));
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

export const loadChecks = {
  async "ten thousand tasks are a few rows of the page"(stage) {
    const { page, close } = await scripted(stage, "/tasks", "tasks");
    await page.locator(".chips b", { hasText: String(TASKS) }).first().waitFor();
    assert.ok((await page.locator(".row").count()) < 120);
    await page.locator(".table .virtual").evaluate((list) => (list.scrollTop = list.scrollHeight));
    await page.getByRole("link", { name: "Task 1", exact: true }).waitFor();
    await page.getByRole("searchbox").fill("Task 4321");
    await page.getByRole("link", { name: "Task 4321" }).waitFor();
    await close();
  },

  async "twenty thousand items scroll"(stage) {
    const { page, close } = await scripted(stage, `/task/${THREAD}`, "long");
    await page.locator(".from-agent strong", { hasText: String(ITEMS - 1) }).waitFor();
    assert.ok((await page.locator(".item").count()) < 200);
    await page.locator(".items").evaluate((list) => (list.scrollTop = 0));
    await page.locator(".from-agent strong", { hasText: /^0$/ }).waitFor();
    await page.keyboard.press("f");
    await page.locator(".from-agent strong", { hasText: String(ITEMS - 1) }).waitFor();
    await close();
  },

  async "a line of 50 MB and a million invisible characters do no harm"(stage) {
    const { page, close } = await scripted(stage, `/task/${THREAD}`, "hostile");
    await page.locator(".clip", { hasText: "characters not shown" }).first().waitFor();
    await page.locator(".hidden-char", { hasText: "×" }).first().waitFor();
    assert.ok((await page.evaluate(() => document.body.textContent.length)) < 200_000);
    await close();
  },

  async "2,000 deltas a second are shown"(stage) {
    const { page, close } = await scripted(stage, `/task/${THREAD}`, "long");
    await page.locator(".from-agent strong", { hasText: String(ITEMS - 1) }).waitFor();
    const { took, behind } = await page.evaluate(() => window.flood(2_000, 2));
    console.log(`   4000 deltas in ${Math.round(took)} ms, the last one shown ${Math.round(behind)} ms later`);
    await close();
  },
};
