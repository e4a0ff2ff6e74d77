// The inbox: exactly what would run, each decision, two windows, a host that is killed.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { connected, looked, open, sent, text } from "./browser.mjs";
import { eventually } from "./host.mjs";

async function operation(client, id) {
  for (const state of ["proposed", "decided", "started", "finished", "withdrawn"]) {
    const { data } = await client.ask("operation/list", { threadId: id, state });
    if (data.length > 0) return data[0];
  }
  throw new Error("there is no operation");
}

async function ended(client, id) {
  await client.until(({ method, params }) => method === "turn/completed" && params.threadId === id, "the end of the turn");
}

export const decisionChecks = {
  async "the inbox shows exactly what would run"(stage) {
    const { page, close } = await open(stage, "/inbox");
    await page.locator(".card .exact", { hasText: "git push --force origin main" }).waitFor();
    assert.match(await text(page.locator(".card .facts")), /inside/);
    const { argumentsDigest } = await operation(stage.client, stage.ids.command);
    assert.match(await text(page.locator(".card .digest")), new RegExp(argumentsDigest));
    await page.keyboard.press("j");
    await page.locator(".card .diff-row.removed", { hasText: "unwrap_or(0)" }).waitFor();
    await page.keyboard.press("j");
    const exact = page.locator(".card .exact").first();
    await exact.filter({ hasText: "\\u{202e}# tidy\\u{202c} \\u{200b}; rm -rf build" }).waitFor();
    assert.equal(await exact.evaluate((element) => getComputedStyle(element).unicodeBidi), "bidi-override");
    await page.locator(".card .warning", { hasText: "characters that cannot be seen" }).waitFor();
    await close();
  },

  async "control characters and thousands that cannot be seen are shown by number in what is approved"(stage) {
    const command = `echo a\u001b[2K\u0007 # ${"\u200b".repeat(5_000)}\u2067\u0430; rm -rf build`;
    const id = await stage.client.task(stage.host.workspace, `run ${command}`, { approvalPolicy: "untrusted", name: "With control characters" });
    const { page, close } = await open(stage, `/task/${id}`);
    const exact = page.locator(".card .exact").first();
    await exact.filter({ hasText: "echo a\\u{1b}[2K\\u{7} # \\u{200b}×5000\\u{2067}\u0430; rm -rf build" }).waitFor();
    await page.locator(".card .warning", { hasText: "characters that cannot be seen" }).waitFor();
    const { operationId, argumentsDigest } = await operation(stage.client, id);
    await stage.client.ask("operation/decide", { operationId, argumentsDigest, decision: { type: "reject", endTurn: true } });
    await page.locator(".turn-mark.interrupted").waitFor();
    await close();
  },

  async "two windows agree, and a key declines"(stage) {
    const one = await open(stage, "/inbox");
    const two = await open(stage, "/inbox");
    await one.page.locator(".queue-line").nth(2).waitFor();
    await two.page.locator(".queue-line").nth(2).waitFor();
    await one.page.locator(".queue-open", { hasText: "rm -rf build" }).click();
    await one.page.locator(".card .exact", { hasText: "rm -rf build" }).waitFor();
    await one.page.keyboard.press("d");
    for (const { page } of [one, two]) await page.locator(".queue-line", { hasText: "rm -rf build" }).waitFor({ state: "detached" });
    await ended(stage.client, stage.ids.hidden);
    await one.close();
    await two.close();
  },

  async "a patch is approved by one key once it is shown"(stage) {
    const { page, close } = await open(stage, "/inbox");
    await page.locator(".queue-open", { hasText: "parser.rs" }).click();
    await page.locator(".card .diff-row.added", { hasText: "ok()?" }).waitFor();
    // The same in two columns: what goes and what comes beside each other, hidden characters by number in both.
    await page.keyboard.press("v");
    const changed = page.locator(".card .diff-two", { has: page.locator(".half.removed") });
    await changed.waitFor();
    assert.match(await text(changed.locator(".half.removed")), /unwrap_or\(0\)/);
    assert.match(await text(changed.locator(".half.added")), /ok\(\)\?/);
    assert.equal(await page.locator(".card .diff-row.added").count(), 0);
    await page.reload();
    await page.locator(".queue-open", { hasText: "parser.rs" }).click();
    await page.locator(".card .diff-two .half.added").waitFor();
    await page.getByRole("button", { name: /Side by side/ }).click();
    await page.locator(".card .diff-row.added", { hasText: "ok()?" }).waitFor();
    await page.keyboard.press("Escape");
    await looked(page);
    await page.keyboard.press("a");
    await page.locator(".queue-line", { hasText: "parser.rs" }).waitFor({ state: "detached" });
    await ended(stage.client, stage.ids.patch);
    assert.match(readFileSync(join(stage.host.workspace, "parser.rs"), "utf8"), /ok\(\)\?/);
    await close();
  },

  async "nothing is lost when the host is killed and started again"(stage) {
    const { page, close } = await open(stage, "/inbox");
    await page.locator(".card .exact", { hasText: "git push" }).waitFor();
    stage.client.close();
    await stage.host.kill();
    await page.locator(".banner", { hasText: "connection is lost" }).waitFor();
    await stage.host.start();
    await connected(page);
    await page.locator(".banner").waitFor({ state: "detached" });
    stage.client = await stage.host.client();
    // Decided with no process behind it: the host brings the task back.
    await page.locator(".card .exact", { hasText: "git push" }).waitFor();
    await stage.client.ask("thread/resume", { threadId: stage.ids.command, excludeTurns: true });
    await page.getByRole("textbox", { name: "A word to the model" }).fill("not on a Friday");
    await page.getByRole("button", { name: /^Decline d/ }).click();
    await page.locator(".all-clear").waitFor();
    await ended(stage.client, stage.ids.command);
    assert.equal((await operation(stage.client, stage.ids.command)).state, "withdrawn");
    await close();
  },

  async "keys alone are enough, and decisions about many ask twice"(stage) {
    const file = join(stage.host.workspace, "by-keys.txt");
    for (const name of ["first", "second"]) {
      await stage.client.task(stage.host.workspace, `run echo ${name} >> by-keys.txt`, { approvalPolicy: "untrusted", name });
    }
    const { page, close } = await open(stage);
    await connected(page);
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("i");
    const lines = page.locator(".queue-line", { hasText: "by-keys.txt" });
    await lines.nth(1).waitFor();
    const others = (await page.locator(".queue-line").count()) - 2;
    for (let index = 0; index < others; index += 1) await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByRole("button", { name: "Approve …" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Yes, approve 2" }).waitFor();
    // All that they are about is shown once more.
    assert.deepEqual(await page.locator("dialog .exact").allInnerTexts(), ["echo first >> by-keys.txt", "echo second >> by-keys.txt"]);
    assert.ok(!existsSync(file), "nothing runs before the second yes");
    await page.getByRole("button", { name: "Yes, approve 2" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => !document.querySelector(".queue")?.textContent.includes("by-keys.txt"));
    await page.keyboard.press("t");
    await page.getByRole("heading", { name: "Tasks" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("second");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.querySelectorAll(".row:not(.head)").length === 1);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "second" }).waitFor();
    await page.locator(".turn-mark.completed").waitFor();
    // Both run at once, in processes of their own.
    await eventually(() => readFileSync(file, "utf8").trim().split("\n").length === 2, "both commands");
    assert.deepEqual(readFileSync(file, "utf8").trim().split("\n").sort(), ["first", "second"]);
    await close();
  },

  async "keys decide only what is looked at"(stage) {
    const name = (at) => `watched-${at}.txt`;
    const ids = [];
    for (let at = 0; at < 4; at += 1) {
      ids.push(await stage.client.task(stage.host.workspace, `run touch ${name(at)}`, { approvalPolicy: "untrusted", name: name(at) }));
    }
    const decide = async (at) => {
      const { operationId, argumentsDigest } = await operation(stage.client, ids[at]);
      await stage.client.ask("operation/decide", { operationId, argumentsDigest, decision: { type: "reject", endTurn: true } });
    };
    const { page, close } = await open(stage);
    const decided = sent(page, "operation/decide");
    await page.reload();
    await connected(page);
    await page.keyboard.press("i");
    const card = (at) => page.locator(".card .exact", { hasText: name(at) });
    await page.locator(".queue-open", { hasText: name(0) }).click();
    await card(0).waitFor();
    // Behind a dialog.
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    for (const key of ["a", "s", "d"]) await page.keyboard.press(key);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.deepEqual(decided, [], "a key behind a dialog decides nothing");
    // A key that is held: the first press counts, and no other.
    await looked(page);
    await page.keyboard.down("d");
    await card(1).waitFor();
    await looked(page);
    await page.keyboard.down("d");
    await page.keyboard.down("d");
    await page.keyboard.up("d");
    await card(1).waitFor();
    assert.equal(decided.length, 1, "a held key decides once");
    // Somebody else decides about an earlier one: what is shown stays.
    await page.keyboard.press("j");
    await card(2).waitFor();
    await decide(1);
    await page.locator(".queue-line", { hasText: name(1) }).waitFor({ state: "detached" });
    await card(2).waitFor();
    // Somebody else decides about the one that is shown, just as a key is pressed.
    await page.evaluate((next) => {
      const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
      new MutationObserver((_, observer) => {
        if (!document.querySelector(".card .exact")?.textContent.includes(next)) return;
        observer.disconnect();
        press();
        document.querySelector(".card .primary").click();
        window.pressed = true;
      }).observe(document.body, { childList: true, subtree: true, characterData: true });
    }, name(3));
    await decide(2);
    await page.waitForFunction(() => window.pressed === true);
    await looked(page);
    assert.equal(decided.length, 1, "what appeared under the finger is not decided");
    await page.keyboard.press("a");
    await page.waitForFunction((gone) => !document.querySelector(".queue")?.textContent.includes(gone), name(3));
    await ended(stage.client, ids[3]);
    assert.deepEqual([0, 1, 2, 3].map((at) => existsSync(join(stage.host.workspace, name(at)))), [false, false, false, true]);
    await close();
  },
};
