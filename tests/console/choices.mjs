// Each decision there is, and each question that is no approval.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { connected, looked, open, sent } from "./browser.mjs";
import { eventually, TestHost } from "./host.mjs";

const SERVER = fileURLToPath(new URL("asking_server.mjs", import.meta.url));
const FLAGS = [
  "-c", "features.default_mode_request_user_input=true", "-c", "features.request_permissions_tool=true",
  "-c", `mcp_servers.asker={command="${process.execPath}", args=["${SERVER}"]}`,
];
const UNTRUSTED = { approvalPolicy: "untrusted" };
const QUESTION = {
  questions: [{
    id: "place", header: "Place", question: "Where to?",
    options: [{ label: "Here", description: "Near." }, { label: "There", description: "Far." }],
  }],
};

async function withHost(stage, check) {
  const host = new TestHost(stage.binary);
  try {
    await host.start(...FLAGS);
    const there = { ...stage, host, client: await host.client() };
    await check(there);
    there.client.close();
  } finally {
    await host.close();
  }
}

function turns(client, id) {
  return client.heard.filter(({ method, params }) => method === "turn/completed" && params.threadId === id).map(({ params }) => params.turn.status);
}

async function ended(client, id, number = 1) {
  await client.until(() => turns(client, id).length >= number, `the end of turn ${number}`);
}

async function again(client, id, text) {
  await client.ask("turn/start", { threadId: id, input: [{ type: "text", text }] });
}

/** A window that hears of no decision of others. */
async function deaf(page) {
  await page.addInitScript(() => {
    const handler = Object.getOwnPropertyDescriptor(window.WebSocket.prototype, "onmessage");
    Object.defineProperty(window.WebSocket.prototype, "onmessage", {
      set(listener) {
        handler.set.call(this, (event) => event.data.includes('"operation/updated"') || listener(event));
      },
    });
  });
  await page.reload();
}

/** A window in which the answer to each `operation/list` waits until `window.letGo` is called. */
async function slow(page) {
  await page.addInitScript(() => {
    const lists = new Set();
    const held = [];
    window.letGo = () => held.splice(0).forEach((give) => give());
    const send = window.WebSocket.prototype.send;
    window.WebSocket.prototype.send = function (data) {
      const { id, method } = JSON.parse(data);
      if (method === "operation/list") lists.add(id);
      send.call(this, data);
    };
    const handler = Object.getOwnPropertyDescriptor(window.WebSocket.prototype, "onmessage");
    Object.defineProperty(window.WebSocket.prototype, "onmessage", {
      set(listener) {
        handler.set.call(this, (event) => {
          const { id, method } = JSON.parse(event.data);
          if (method === undefined && lists.has(id)) held.push(() => listener(event));
          else listener(event);
        });
      },
    });
  });
  await page.reload();
}

async function reject(client, threadId) {
  const { data } = await client.ask("operation/list", { threadId });
  const [{ operationId, argumentsDigest }] = data;
  await client.ask("operation/decide", { operationId, argumentsDigest, decision: { type: "reject", endTurn: true } });
}

export const choiceChecks = {
  async "a command is edited before it runs"(stage) {
    await withHost(stage, async (there) => {
      const { client, host } = there;
      const id = await client.task(host.workspace, "run touch wrong.txt", { ...UNTRUSTED, name: "To be edited" });
      const { page, close } = await open(there, "/inbox");
      await page.locator(".card .exact", { hasText: "touch wrong.txt" }).waitFor();
      await looked(page);
      await page.keyboard.press("e");
      const field = page.getByLabel("What is to run instead");
      assert.equal(await field.inputValue(), "touch wrong.txt");
      const run = page.getByRole("button", { name: "Run this instead" });
      await field.fill("");
      assert.ok(await run.isDisabled(), "nothing cannot run");
      await field.fill("touch right.txt # \u202e");
      await page.locator(".edit .exact", { hasText: "\\u{202e}" }).waitFor();
      await field.fill("touch right.txt");
      await run.click();
      await eventually(async () => {
        // The policy asks about everything here, also about this one.
        const asked = page.locator(".card .exact", { hasText: "touch right.txt" });
        if ((await asked.count()) > 0) {
          await looked(page);
          await page.keyboard.press("a");
        }
        return turns(client, id).length > 0;
      }, "the end of the turn");
      assert.deepEqual([existsSync(join(host.workspace, "wrong.txt")), existsSync(join(host.workspace, "right.txt"))], [false, true]);
      await close();
    });
  },

  async "a question of a server is there for a window opened later, and stays when a decision fails"(stage) {
    await withHost(stage, async (there) => {
      const { client, host } = there;
      const { thread: { id } } = await client.ask("thread/start", { cwd: host.workspace, approvalPolicy: "on-request", sandbox: "workspace-write" });
      await client.ask("thread/name/set", { threadId: id, name: "A form" });
      await again(client, id, "call mcp__asker__ask {}");
      await client.until(({ method }) => method === "mcpServer/elicitation/request", "the question");
      const stale = await client.task(host.workspace, "run touch stale.txt", { ...UNTRUSTED, name: "Stale" });
      const { page, close } = await open(there, "/inbox");
      const left = sent(page, "thread/unsubscribe");
      await deaf(page);
      const question = page.locator(".queue-line", { hasText: "A form" });
      await question.waitFor();
      await page.locator(".queue-open", { hasText: "stale.txt" }).click();
      await looked(page);
      await reject(client, stale);
      await page.keyboard.press("a");
      await page.locator(".queue-line", { hasText: "stale.txt" }).waitFor({ state: "detached" });
      await question.waitFor();
      await question.locator(".queue-open").click();
      await looked(page);
      await page.getByRole("button", { name: "Decline", exact: true }).click();
      await ended(client, id);
      await eventually(() => left.some(({ threadId }) => threadId === id), "the window to follow the task no longer");
      await close();
    });
  },

  async "what is decided while the inbox is read does not come back"(stage) {
    await withHost(stage, async (there) => {
      const { client, host } = there;
      const gone = await client.task(host.workspace, "run touch gone.txt", { ...UNTRUSTED, name: "Gone" });
      const { page, close } = await open(there, "/inbox");
      await page.locator(".queue-line", { hasText: "gone.txt" }).waitFor();
      await slow(page);
      await connected(page);
      await reject(client, gone);
      await ended(client, gone);
      const later = await client.task(host.workspace, "run touch later.txt", { ...UNTRUSTED, name: "Later" });
      await page.locator(".queue-line", { hasText: "later.txt" }).waitFor();
      await page.evaluate(() => window.letGo());
      await page.locator(".queue-line", { hasText: "later.txt" }).waitFor();
      await page.waitForTimeout(300);
      assert.equal(await page.locator(".queue-line", { hasText: "gone.txt" }).count(), 0);
      await reject(client, later);
      await close();
    });
  },

  async "a command is approved for the session, declined with the turn, or answered instead"(stage) {
    await withHost(stage, async (there) => {
      const { client, host } = there;
      const session = await client.task(host.workspace, "run touch session.txt", { ...UNTRUSTED, name: "Session" });
      const { page, close } = await open(there, `/task/${session}`);
      await looked(page);
      await page.keyboard.press("s");
      await ended(client, session);
      await again(client, session, "run touch session.txt");
      await ended(client, session, 2);
      assert.ok(existsSync(join(host.workspace, "session.txt")));
      // One that waits is suspended and resumed, and still waits.
      const kept = await client.task(host.workspace, "run touch kept.txt", { ...UNTRUSTED, name: "Kept" });
      await page.evaluate((id) => (location.hash = `/task/${id}`), kept);
      await page.locator(".card .exact", { hasText: "kept.txt" }).waitFor();
      await page.getByRole("button", { name: "Suspend" }).click();
      await page.locator(".task-head .s-suspended").waitFor();
      await page.getByRole("button", { name: "Resume" }).click();
      await page.locator(".task-head .s-waiting").waitFor();
      await page.getByRole("button", { name: /^Decline d/ }).click();
      await ended(client, kept);
      const stopped = await client.task(host.workspace, "run touch stopped.txt", { ...UNTRUSTED, name: "Stopped" });
      await page.evaluate((id) => (location.hash = `/task/${id}`), stopped);
      await page.locator(".card .exact", { hasText: "stopped.txt" }).waitFor();
      await page.getByRole("button", { name: "Decline and stop the turn" }).click();
      await page.locator(".turn-mark.interrupted").waitFor();
      const instead = await client.task(host.workspace, "run touch instead.txt", { ...UNTRUSTED, name: "Instead" });
      await page.evaluate((id) => (location.hash = `/task/${id}`), instead);
      await page.locator(".card .exact", { hasText: "instead.txt" }).waitFor();
      await page.getByRole("textbox", { name: "A word to the model" }).fill("it is there already");
      await page.getByRole("button", { name: "Answer instead" }).click();
      await page.locator(".from-agent", { hasText: "it is there already" }).waitFor();
      for (const name of ["stopped.txt", "instead.txt"]) assert.ok(!existsSync(join(host.workspace, name)), name);
      await close();
    });
  },

  async "an unknown outcome is run again, answered or declined"(stage) {
    await withHost(stage, async (there) => {
      const { host } = there;
      const ids = [];
      for (const name of ["rerun", "answer", "leave"]) {
        const { thread } = await there.client.ask("thread/start", { cwd: host.workspace, approvalPolicy: "never", sandbox: "workspace-write" });
        await there.client.ask("thread/name/set", { threadId: thread.id, name });
        await again(there.client, thread.id, `run echo ${name} >> ${name}.txt; until [ -e done ]; do sleep 0.05; done`);
        ids.push(thread.id);
        await eventually(() => existsSync(join(host.workspace, `${name}.txt`)), `${name}.txt`);
      }
      const { page, close } = await open(there, "/inbox");
      await connected(page);
      there.client.close();
      await host.kill();
      writeFileSync(join(host.workspace, "done"), "");
      await host.start(...FLAGS);
      there.client = await host.client();
      for (const id of ids) await there.client.ask("thread/resume", { threadId: id, excludeTurns: true });
      const choose = async (name) => {
        await page.locator(".queue-open", { hasText: `${name}.txt` }).click();
        await page.locator(".card .warning", { hasText: "may do it twice" }).waitFor();
        await page.locator(".card .exact", { hasText: `${name}.txt` }).waitFor();
        await looked(page);
      };
      await choose("rerun");
      await page.getByRole("button", { name: /^Run again/ }).click();
      await choose("answer");
      await page.getByRole("textbox", { name: "A word to the model" }).fill("I looked: it was written");
      await page.getByRole("button", { name: "Answer instead" }).click();
      await choose("leave");
      await page.keyboard.press("d");
      await page.locator(".all-clear").waitFor();
      for (const id of ids) await ended(there.client, id);
      await page.evaluate((id) => (location.hash = `/task/${id}`), ids[1]);
      await page.locator(".from-agent", { hasText: "I looked: it was written" }).waitFor();
      await close();
    });
  },

  async "questions of the agent, of a server and about access are answered by forms"(stage) {
    await withHost(stage, async (there) => {
      const { client, host } = there;
      const { page, close } = await open(there, "/inbox");
      const ask = async (text, name) => {
        const { thread: { id } } = await client.ask("thread/start", { cwd: host.workspace, approvalPolicy: "on-request", sandbox: "workspace-write" });
        await client.ask("thread/name/set", { threadId: id, name });
        await again(client, id, text);
        await page.locator(".queue-open", { hasText: name }).click();
        await looked(page);
        return id;
      };
      const answered = async (id, words) => {
        await ended(client, id);
        await page.evaluate((to) => (location.hash = `/task/${to}`), id);
        await page.locator(".from-agent", { hasText: words }).waitFor();
        await page.evaluate(() => (location.hash = "/inbox"));
      };
      /** The answers that the server received. */
      const told = async (id, words) => {
        const isTold = ({ method, params }) => method === "item/completed" && params.threadId === id && params.item.type === "mcpToolCall" && words.test(JSON.stringify(params.item.result));
        await client.until(isTold, `${words} from the server`);
      };
      const asked = await ask(`call request_user_input ${JSON.stringify(QUESTION)}`, "A question");
      await page.getByLabel("There").check();
      await page.getByRole("button", { name: "Answer", exact: true }).click();
      await answered(asked, "There");
      const wanted = await ask(`call request_permissions ${JSON.stringify({ reason: "to fetch", permissions: { file_system: { write: [host.scratch] } } })}`, "Access");
      await page.locator(".card .reason", { hasText: "to fetch" }).waitFor();
      await page.locator(".card .exact", { hasText: host.scratch }).waitFor();
      await page.getByRole("button", { name: "Grant for this turn" }).click();
      await answered(wanted, host.scratch);
      const form = await ask("call mcp__asker__ask {}", "A form");
      await page.locator(".card", { hasText: "Which release is it?" }).waitFor();
      assert.ok(await page.getByRole("button", { name: "Send" }).isDisabled(), "a name is wanted");
      await page.getByLabel("Name of the release").fill("2.4");
      await page.getByLabel("Copies").fill("3");
      await page.getByLabel("Colour").selectOption("green");
      await page.getByLabel("With a message to all").check();
      await page.getByRole("button", { name: "Send" }).click();
      await told(form, /color\W+green\W+copies\W+3\W+loud\W+true\W+name\W+2\.4/);
      const refused = await ask("call mcp__asker__ask {}", "A form to refuse");
      await page.getByRole("button", { name: "Decline", exact: true }).click();
      await told(refused, /action\W+decline/);
      await close();
    });
  },

  async "many are declined at once, and who comes second is told"(stage) {
    await withHost(stage, async (there) => {
      const { client, host } = there;
      const ids = [];
      for (const name of ["first", "second", "third"]) ids.push(await client.task(host.workspace, `run touch ${name}.txt`, { ...UNTRUSTED, name }));
      const { page, close } = await open(there, "/tasks");
      await deaf(page);
      await page.keyboard.press("i");
      await page.locator(".queue-open", { hasText: "third.txt" }).click();
      const { data } = await client.ask("operation/list", { threadId: ids[2] });
      const [{ operationId, argumentsDigest }] = data;
      await client.ask("operation/decide", { operationId, argumentsDigest, decision: { type: "reject", endTurn: true } });
      await looked(page);
      await page.keyboard.press("a");
      await page.locator(".toast.problem").waitFor();
      await page.locator(".queue-line", { hasText: "third.txt" }).waitFor({ state: "detached" });
      for (const name of ["first", "second"]) await page.locator(".queue-line", { hasText: name }).getByRole("checkbox").check();
      await page.getByRole("button", { name: "Decline …" }).click();
      await page.getByRole("button", { name: "Yes, decline 2" }).click();
      await page.locator(".all-clear").waitFor();
      for (const id of ids) await ended(client, id);
      for (const name of ["first", "second", "third"]) assert.ok(!existsSync(join(host.workspace, `${name}.txt`)), name);
      await close();
    });
  },
};
