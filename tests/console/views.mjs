// The other views of a task: the next request to its model, its records, and pictures that are files.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { connected, open, seriousForAxe, text } from "./browser.mjs";
import { withCrew } from "./crew.mjs";
import { TestHost } from "./host.mjs";
import { HOSTILE } from "./scenes.mjs";

const DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Every record of a thread by its kind, oldest first. */
async function kindsOf(client, threadId) {
  const { data } = await client.ask("thread/records/list", { threadId, sortDirection: "asc", limit: 100 });
  return data.map(({ kind }) => kind);
}

/** In the page: the answer to a request over a connection of its own. */
function askAs([token, method, params]) {
  return new Promise((resolve) => {
    const socket = new WebSocket(`ws://${location.host}/`, ["oarlock", `oarlock.bearer.${btoa(token).replaceAll("=", "")}`]);
    const send = (id, name, given) => socket.send(JSON.stringify({ id, method: name, params: given }));
    socket.onopen = () => send(1, "initialize", { clientInfo: { name: "tests", version: "1" }, capabilities: { experimentalApi: true } });
    socket.onmessage = (event) => {
      const answer = JSON.parse(event.data);
      if (answer.id === 1) send(2, method, params);
      if (answer.id === 2) resolve(answer);
    };
  });
}

export const viewChecks = {
  async "what the model sees is shown piece by piece, as text"(stage) {
    const id = await stage.client.task(stage.host.workspace, `say ${HOSTILE}`, { name: "Seen by the model" });
    const { page, context, close } = await open(stage, `/task/${id}`);
    await page.locator(".from-agent").waitFor();
    await page.keyboard.press("p");
    const piece = (name) => page.locator(".piece", { has: page.locator(".piece-name", { hasText: name }) });
    await piece(/^core$/).waitFor();
    const asked = await stage.client.ask("thread/prompt/read", { threadId: id });
    for (const [chapter, pieces] of Object.entries(asked.pieces)) assert.ok(pieces.length > 0 || chapter === "next", chapter);
    assert.equal(await page.locator(".piece").count(), Object.values(asked.pieces).flat().length);
    const lead = await text(page.locator(".lead"));
    assert.match(lead, /^About [\d.]+k tokens/);
    // Each text whole, on demand.
    await piece(/^core$/).locator("summary").click();
    const core = asked.pieces.instructions[0].text;
    await piece(/^core$/).locator(".code").waitFor();
    assert.equal((await piece(/^core$/).locator(".code").textContent()).slice(0, 200), core.slice(0, 200));
    const hostile = page.locator(".piece", { has: page.locator(".role-user") }).filter({ hasText: "say <script>" });
    await hostile.locator("summary").click();
    await hostile.locator(".code .hidden-char", { hasText: "\\u{202e}" }).waitFor();
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator(".prompt-page a, .prompt-page img, .prompt-page script").count(), 0);
    assert.deepEqual(await seriousForAxe(stage, context, page), []);
    // The next turn changes what comes after it.
    const before = asked.pieces.history.length;
    await stage.client.ask("turn/start", { threadId: id, input: [{ type: "text", text: "say once more" }] });
    await page.locator(".piece", { hasText: "say once more" }).waitFor();
    assert.ok((await stage.client.ask("thread/prompt/read", { threadId: id })).pieces.history.length > before);
    await page.keyboard.press("c");
    await page.locator(".from-agent", { hasText: "once more" }).waitFor();
    await close();
  },

  async "a task without a process gets one only when somebody wants to see its next request"(stage) {
    const id = await stage.client.task(stage.host.workspace, "say resting", { name: "Resting" });
    await stage.client.ask("task/suspend", { threadId: id });
    const { page, close } = await open(stage, `/task/${id}/prompt`);
    const start = page.getByRole("button", { name: "Start one and look" });
    await start.waitFor();
    assert.equal((await stage.client.ask("task/read", { threadId: id })).task.hasRuntime, false);
    await start.click();
    await page.locator(".piece", { hasText: "say resting" }).waitFor();
    await close();
  },

  async "the records are listed as they are stored, and new ones appear"(stage) {
    const id = await stage.client.task(stage.host.workspace, "run echo recorded", { name: "Recorded" });
    const { page, context, close } = await open(stage, `/task/${id}`);
    await page.locator(".from-agent").waitFor();
    await page.keyboard.press("r");
    const shown = () => page.locator(".record .record-kind").allInnerTexts();
    await page.locator(".record", { hasText: "sessionMeta" }).waitFor();
    assert.deepEqual(await shown(), await kindsOf(stage.client, id));
    const operation = page.locator(".record", { has: page.locator(".r-operation") }).first();
    await operation.locator("summary").click();
    await operation.locator(".code", { hasText: '"echo recorded"' }).waitFor();
    assert.deepEqual(await seriousForAxe(stage, context, page), []);
    const before = (await shown()).length;
    await stage.client.ask("turn/start", { threadId: id, input: [{ type: "text", text: "say added since" }] });
    await page.locator(".record", { hasText: "added since" }).first().waitFor();
    await page.waitForFunction((count) => document.querySelectorAll(".record .r-turnEnded").length === 2 && document.querySelectorAll(".record").length > count, before);
    assert.deepEqual(await shown(), await kindsOf(stage.client, id));
    await operation.locator(".code").waitFor();
    await close();
  },

  async "of many records the end is read, and the rest as it is looked at; a viewer has neither view"(stage) {
    await withCrew(stage, async ({ client, host }, as) => {
      const task = await client.task(host.workspace, "many: 300", { name: "Many records" });
      const { page, close } = await as("operator", `/task/${task}/records`);
      await page.locator(".record .r-turnEnded").waitFor();
      assert.ok((await page.locator(".record").count()) < 100, "only what is near the screen is drawn");
      await page.locator(".records").hover();
      for (let wheels = 0; (await page.locator(".record", { hasText: "sessionMeta" }).count()) === 0; wheels += 1) {
        assert.ok(wheels < 2_000, "the beginning is not reached");
        await page.mouse.wheel(0, -1_200);
        await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      }
      assert.equal(await text(page.locator(".record .ordinal").first()), "0");
      await page.keyboard.press("f");
      await page.locator(".record .r-turnEnded").waitFor();
      await close();
      const viewer = await as("viewer", `/task/${task}/records`);
      await viewer.page.locator(".from-agent").first().waitFor();
      assert.equal(await viewer.page.locator(".tabs, .record").count(), 0);
      for (const key of ["p", "r"]) await viewer.page.keyboard.press(key);
      assert.equal(await viewer.page.locator(".prompt-page, .records, .all-clear").count(), 0);
      // The server refuses it all the same.
      for (const method of ["thread/prompt/read", "thread/records/list"]) {
        const { error } = await viewer.page.evaluate(askAs, ["viewer-token", method, { threadId: task }]);
        assert.equal(error?.data?.code, "forbidden", method);
      }
      await viewer.close();
    });
  },

  async "an app-server shows both views, too"(stage) {
    const server = new TestHost(stage.binary, "app-server");
    try {
      await server.start();
      const { page, close } = await open({ ...stage, host: server }, "/new");
      await connected(page);
      await page.getByLabel("What is to be done").fill("say at an app-server");
      await page.getByLabel("Folder on the server").fill(server.workspace);
      await page.keyboard.press("Control+Enter");
      await page.locator(".turn-mark.completed").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("link", { name: "What the model sees" }).click();
      await page.locator(".piece", { hasText: "say at an app-server" }).waitFor();
      await page.getByRole("link", { name: "Records" }).click();
      await page.locator(".record .r-turnEnded").waitFor();
      await close();
    } finally {
      await server.close();
    }
  },

  async "a picture that is a file is shown by a click, and nothing else is"(stage) {
    writeFileSync(join(stage.host.workspace, "dot.png"), Buffer.from(DOT, "base64"));
    const id = await stage.client.task(stage.host.workspace, 'call view_image {"path": "dot.png"}', { name: "A picture by its path" });
    const { page, close } = await open(stage, `/task/${id}`);
    const show = page.getByRole("button", { name: "Show the picture" });
    await show.waitFor();
    assert.equal(await page.locator(".items img").count(), 0);
    await show.click();
    const picture = page.locator(".items .picture");
    await picture.waitFor();
    assert.match(await picture.getAttribute("src"), /^data:image\/png;base64,/);
    // The file has changed since: a new window reads it anew.
    writeFileSync(join(stage.host.workspace, "dot.png"), "<svg onload=alert(1)>");
    await page.reload();
    await show.click();
    await page.locator(".file-picture", { hasText: "not a PNG" }).waitFor();
    assert.equal(await page.locator(".items img").count(), 0);
    await close();
  },
};
