// Going on with a thread, and leaving in the middle of a turn.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { alive, asked, check, conversation, eventually, play } from "./world.mjs";

const requestAbandoned = () => eventually(async () => (await asked())[0]?.abandoned, "the model's connection is closed");
/** The promise that this run ends by its abort; a failure is kept until it is awaited. */
function aborts(run) {
  const rejected = assert.rejects(run, { name: "AbortError" });
  rejected.catch(() => {});
  return rejected;
}

const requestMade = () => eventually(async () => (await asked()).length > 0, "the model is asked");

check("run: a second turn on the same thread carries the first", async (world) => {
  await play({ text: "one" }, { text: "two" });
  const thread = world.thread();
  await thread.run("first");
  const id = thread.id;
  assert.equal((await thread.run("second")).finalResponse, "two");
  assert.equal(thread.id, id);
  assert.deepEqual(conversation((await asked())[1]), ["first", "one", "second"]);
});

check("resumeThread: by id, in a new client, with options of its own", async (world) => {
  await play({ text: "one" }, { text: "two" });
  const thread = world.thread();
  await thread.run("first");
  const again = world.codex().resumeThread(thread.id, { workingDirectory: world.cwd, model: "other-model" });
  assert.equal((await again.run("second")).finalResponse, "two");
  assert.equal(again.id, thread.id);
  const request = (await asked())[1];
  assert.deepEqual(conversation(request), ["first", "one", "second"]);
  assert.equal(request.body.model, "other-model");
});

check("resumeThread: takes images and a schema as well", async (world) => {
  const image = path.join(world.root, "pixel.png");
  const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  fs.writeFileSync(image, Buffer.from(pixel, "base64"));
  await play({ text: "one" }, { text: "{}" });
  const thread = world.thread();
  await thread.run("first");
  const outputSchema = { type: "object", properties: {}, additionalProperties: false };
  const input = [{ type: "text", text: "second" }, { type: "local_image", path: image }];
  await thread.run(input, { outputSchema });
  const { body } = (await asked())[1];
  assert.ok(body.input.flatMap((item) => item.content ?? []).some(({ type }) => type === "input_image"));
  assert.deepEqual(body.text.format.schema, outputSchema);
});

check("resumeThread: a failed turn does not spoil the thread", async (world) => {
  await play({ fail: 400, message: "this model says no" }, { text: "better" });
  const thread = world.thread();
  await assert.rejects(thread.run("first"), /says no/);
  assert.equal((await thread.run("second")).finalResponse, "better");
  assert.deepEqual(conversation((await asked())[1]), ["first", "second"]);
});

check("abort: during the answer, the run rejects and the model is let go", async (world) => {
  await play({ text: "never finished words", hold: true });
  const abort = new AbortController();
  const rejected = aborts(world.thread().run("Start.", { signal: abort.signal }));
  await requestMade();
  abort.abort();
  await rejected;
  await requestAbandoned();
});

check("abort: before the start nothing is asked", async (world) => {
  const abort = new AbortController();
  abort.abort();
  await assert.rejects(world.thread().run("Start.", { signal: abort.signal }), { name: "AbortError" });
  assert.deepEqual(await asked(), []);
});

check("abort: the thread can be taken up again", async (world) => {
  await play({ text: "never finished words", hold: true }, { text: "fresh" });
  const abort = new AbortController();
  const thread = world.thread();
  const { events } = await thread.runStreamed("Start.", { signal: abort.signal });
  await assert.rejects(async () => {
    for await (const event of events) {
      if (event.type !== "turn.started") continue;
      await requestMade();
      abort.abort();
    }
  }, { name: "AbortError" });
  assert.equal((await thread.run("Again.")).finalResponse, "fresh");
  assert.deepEqual(conversation((await asked())[1]).filter((text) => text.endsWith(".")), ["Start.", "Again."]);
});

check("abort: a running command does not outlive it", async (world) => {
  await play({ run: "echo $$ > pid; exec sleep 600" });
  const abort = new AbortController();
  const rejected = aborts(world.thread().run("Run it.", { signal: abort.signal }));
  const file = path.join(world.cwd, "pid");
  const pid = await eventually(() => fs.existsSync(file) && fs.readFileSync(file, "utf8").trim(), "it runs");
  abort.abort();
  await rejected;
  await eventually(() => !alive(pid), "the command has ended");
});

check("break: leaving the stream early ends the process", async (world) => {
  await play({ text: "never finished words", hold: true });
  const { events } = await world.thread().runStreamed("Start.");
  for await (const event of events) {
    if (event.type !== "turn.started") continue;
    await requestMade();
    break;
  }
  await requestAbandoned();
});
