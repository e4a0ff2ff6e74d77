// What a turn reports: events, items, usage, failures.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { asked, check, collect, conversation, play } from "./world.mjs";

// Warnings come as items of this type: a model that a server has no facts about is one.
const noWarning = (item) => item?.type !== "error";

check("run: answer, items, usage and the thread's id", async (world) => {
  await play({ text: "Hello from the model." });
  const thread = world.thread();
  assert.equal(thread.id, null);
  const turn = await thread.run("Say hello.");
  assert.equal(turn.finalResponse, "Hello from the model.");
  const items = turn.items.filter(noWarning);
  assert.deepEqual(items, [{ id: items[0]?.id, type: "agent_message", text: "Hello from the model." }]);
  assert.match(items[0].id, /./);
  const { input_tokens, cached_input_tokens, output_tokens, reasoning_output_tokens } = turn.usage;
  assert.deepEqual([input_tokens, cached_input_tokens, output_tokens, reasoning_output_tokens], [100, 10, 20, 5]);
  assert.match(thread.id, /^[0-9a-f-]{36}$/);
  assert.deepEqual(conversation((await asked())[0]), ["Say hello."]);
});

check("runStreamed: the events of a plain turn, in order", async (world) => {
  await play({ text: "Hello." });
  const thread = world.thread();
  const { events } = await thread.runStreamed("Say hello.");
  const seen = (await collect(events)).filter(({ item }) => noWarning(item));
  const types = ["thread.started", "turn.started", "item.completed", "turn.completed"];
  assert.deepEqual(seen.map(({ type }) => type), types);
  assert.equal(seen[0].thread_id, thread.id);
});

check("run: the prompt arrives as it was written", async (world) => {
  const prompt = "zwei Zeilen\n\n  二 'quoted' \"$HOME\" `x`\t--flag\n- end";
  await play({ text: "ok" });
  await world.thread().run(prompt);
  assert.deepEqual(conversation((await asked())[0]), [prompt]);
});

check("command: starts, completes, and its output reaches the model", async (world) => {
  await play({ run: "echo out; echo made > made.txt" }, { text: "done" });
  const { events } = await world.thread().runStreamed("Run it.");
  const seen = (await collect(events)).filter(({ item }) => item?.type === "command_execution");
  assert.deepEqual(seen.map(({ type, item }) => [type, item.status]), [
    ["item.started", "in_progress"],
    ["item.completed", "completed"],
  ]);
  const { command, aggregated_output, exit_code, id } = seen[1].item;
  assert.equal(id, seen[0].item.id);
  assert.match(command, /made\.txt/);
  assert.match(aggregated_output, /out/);
  assert.equal(exit_code, 0);
  assert.equal(fs.readFileSync(path.join(world.cwd, "made.txt"), "utf8"), "made\n");
  assert.match(JSON.stringify((await asked())[1].body.input.at(-1)), /out/);
});

check("command: a failing one is an item that failed, and the turn goes on", async (world) => {
  await play({ run: "exit 3" }, { text: "it failed" });
  const turn = await world.thread().run("Run it.");
  const item = turn.items.find(({ type }) => type === "command_execution");
  assert.deepEqual([item.status, item.exit_code], ["failed", 3]);
  assert.equal(turn.finalResponse, "it failed");
});

check("patch: a file change with paths and kinds", async (world) => {
  fs.writeFileSync(path.join(world.cwd, "old.txt"), "old\n");
  const changes = "*** Add File: new.txt\n+fresh\n*** Update File: old.txt\n@@\n-old\n+changed";
  await play({ run: `apply_patch <<'EOF'\n*** Begin Patch\n${changes}\n*** End Patch\nEOF` }, { text: "patched" });
  const turn = await world.thread().run("Patch it.");
  const item = turn.items.find(({ type }) => type === "file_change");
  assert.equal(item?.status, "completed");
  const found = item.changes.map((change) => [path.basename(change.path), change.kind]).sort();
  assert.deepEqual(found, [["new.txt", "add"], ["old.txt", "update"]]);
  assert.equal(fs.readFileSync(path.join(world.cwd, "old.txt"), "utf8"), "changed\n");
});

check("plan: a to-do list is started, updated and completed", async (world) => {
  const plan = (first, second) => ({
    call: "update_plan",
    arguments: { plan: [{ step: "look", status: first }, { step: "leap", status: second }] },
  });
  await play(plan("in_progress", "pending"), plan("completed", "in_progress"), { text: "planned" });
  // Newer servers offer this tool only when told to.
  const thread = world.thread({}, { config: { tools: { update_plan: { enabled: true } } } });
  const { events } = await thread.runStreamed("Plan.");
  const lists = (await collect(events)).filter(({ item }) => item?.type === "todo_list");
  assert.deepEqual(lists.map(({ type }) => type), ["item.started", "item.updated", "item.completed"]);
  assert.deepEqual(lists[2].item.items, [{ text: "look", completed: true }, { text: "leap", completed: false }]);
});

check("reasoning: a summary becomes an item", async (world) => {
  await play({ reasoning: "Because it is asked.", text: "done" });
  const turn = await world.thread().run("Think.");
  assert.deepEqual(turn.items.filter(noWarning).map(({ type, text }) => [type, text]), [
    ["reasoning", "Because it is asked."],
    ["agent_message", "done"],
  ]);
});

check("error: run() rejects with the model's words", async (world) => {
  await play({ fail: 400, message: "this model says no" });
  await assert.rejects(world.thread().run("Fail."), /this model says no/);
});

check("error: the stream has the error and the failed turn, then the exit code", async (world) => {
  await play({ fail: 400, message: "this model says no" });
  const { events } = await world.thread().runStreamed("Fail.");
  const seen = [];
  await assert.rejects(async () => {
    for await (const event of events) if (noWarning(event.item)) seen.push(event);
  }, /exited with code 1/);
  assert.deepEqual(seen.map(({ type }) => type), ["thread.started", "turn.started", "error", "turn.failed"]);
  assert.match(seen.at(-1).error.message, /says no/);
});

check("error: an empty prompt is refused", async (world) => {
  await assert.rejects(world.thread().run(""), /exited with code 1/);
});
