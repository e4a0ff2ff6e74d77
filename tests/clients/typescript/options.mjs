// What a user can set for the process, a thread and a turn.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { asked, check, play, texts } from "./world.mjs";

const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

check("outputSchema: reaches the model, and the answer is whole", async (world) => {
  const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false };
  await play({ text: '{"n": 7}' });
  const turn = await world.thread().run("A number.", { outputSchema: schema });
  assert.deepEqual(JSON.parse(turn.finalResponse), { n: 7 });
  const { format } = (await asked())[0].body.text;
  assert.deepEqual([format.type, format.strict, format.schema], ["json_schema", true, schema]);
});

check("images: several, with the texts joined into one prompt", async (world) => {
  const images = ["one.png", "two.png"].map((name) => path.join(world.root, name));
  for (const image of images) fs.writeFileSync(image, PIXEL);
  await play({ text: "two pixels" });
  await world.thread().run([
    { type: "text", text: "What" },
    ...images.map((image) => ({ type: "local_image", path: image })),
    { type: "text", text: "is it?" },
  ]);
  const [request] = await asked();
  const parts = request.body.input.flatMap((item) => item.content ?? []);
  const urls = parts.filter(({ type }) => type === "input_image").map(({ image_url }) => image_url);
  assert.equal(urls.length, 2);
  assert.ok(urls.every((url) => url.startsWith("data:image/png;base64,")), urls.join());
  assert.ok(texts(request).includes("What\n\nis it?"), texts(request).join("|"));
});

check("workingDirectory: commands run there", async (world) => {
  const folder = path.join(world.cwd, "deep");
  fs.mkdirSync(folder);
  await play({ run: "pwd" }, { text: "there" });
  const turn = await world.thread({ workingDirectory: folder }).run("Where?");
  assert.equal(turn.items.find(({ type }) => type === "command_execution").aggregated_output.trim(), folder);
});

check("workingDirectory: outside a repository only with skipGitRepoCheck", async (world) => {
  // Nothing above the root of a file system can be a repository; a check-out may surround the workspace.
  const folder = fs.mkdtempSync("/var/tmp/oarlock-clients-");
  try {
    // Full access would do away with the question.
    const options = { workingDirectory: folder, sandboxMode: "read-only" };
    await play({ text: "ok" });
    await assert.rejects(world.thread(options).run("Hello."), /exited with code 1/);
    assert.deepEqual(await asked(), []);
    const turn = await world.thread({ ...options, skipGitRepoCheck: true }).run("Hello.");
    assert.equal(turn.finalResponse, "ok");
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
});

check("workingDirectory: one that does not exist is an error", async (world) => {
  await assert.rejects(world.thread({ workingDirectory: path.join(world.root, "nowhere") }).run("Hello."), /exited/);
});

check("model and modelReasoningEffort: reach the model", async (world) => {
  await play({ text: "ok" });
  await world.thread({ model: "other-model", modelReasoningEffort: "high" }).run("Hello.");
  const [{ body }] = await asked();
  assert.equal(body.model, "other-model");
  assert.equal(body.reasoning?.effort, "high");
});

for (const modelReasoningEffort of ["minimal", "low", "medium", "xhigh", "max", "ultra", "persistent"]) {
  check(`modelReasoningEffort: ${modelReasoningEffort} is accepted`, async (world) => {
    await play({ text: "ok" });
    assert.equal((await world.thread({ modelReasoningEffort }).run("Hello.")).finalResponse, "ok");
  });
}

for (const sandboxMode of ["read-only", "workspace-write", "danger-full-access"]) {
  check(`sandboxMode: ${sandboxMode} is accepted`, async (world) => {
    await play({ text: "ok" });
    assert.equal((await world.thread({ sandboxMode }).run("Hello.")).finalResponse, "ok");
  });
}

check("the other options of a thread are accepted together", async (world) => {
  const extra = path.join(world.root, "extra");
  fs.mkdirSync(extra);
  await play({ text: "ok" });
  const thread = world.thread({
    sandboxMode: "workspace-write",
    networkAccessEnabled: true,
    webSearchMode: "disabled",
    approvalPolicy: "on-request",
    additionalDirectories: [extra],
    threadSource: "user",
  });
  assert.equal((await thread.run("Hello.")).finalResponse, "ok");
});

check("webSearchEnabled and webSearchMode: all values are accepted", async (world) => {
  const values = [{ webSearchEnabled: true }, { webSearchEnabled: false }];
  values.push(...["disabled", "cached", "live"].map((webSearchMode) => ({ webSearchMode })));
  await play(...values.map(() => ({ text: "ok" })));
  for (const value of values) assert.equal((await world.thread(value).run("Hello.")).finalResponse, "ok");
});

check("approvalPolicy: all values but one are accepted, and none waits for anybody", async (world) => {
  const policies = ["never", "on-request", "on-failure"];
  await play(...policies.flatMap(() => [{ run: "echo ran" }, { text: "ok" }]));
  for (const approvalPolicy of policies) {
    assert.equal((await world.thread({ approvalPolicy }).run("Run it.")).finalResponse, "ok");
  }
});

check("approvalPolicy: untrusted is accepted, or refused by name as newer servers do", async (world) => {
  await play({ text: "ok" });
  const turn = await world.thread({ approvalPolicy: "untrusted" }).run("Hello.").catch(async (error) => {
    assert.match(error.message, /untrusted/);
    await play();
    return null;
  });
  if (turn) assert.equal(turn.finalResponse, "ok");
});

check("cyberAccessProgram: is accepted", async (world) => {
  await play({ text: "ok" });
  assert.equal((await world.thread().run("Hello.", { cyberAccessProgram: "standard" })).finalResponse, "ok");
});

check("config and configOverrides: nested values, then raw ones", async (world) => {
  await play({ text: "ok" });
  const config = { model: "from-config", model_reasoning_summary: "concise", sandbox_workspace_write: { network_access: true } };
  const configOverrides = ['model="from-raw"', 'model_reasoning_effort="low"'];
  await world.thread({}, { config, configOverrides }).run("Hello.");
  const [{ body }] = await asked();
  assert.equal(body.model, "from-raw");
  assert.deepEqual(body.reasoning, { effort: "low", summary: "concise" });
});

check("baseUrl and apiKey: the built-in provider elsewhere", async (world) => {
  await play({ text: "ok" });
  const config = { model_provider: "openai" };
  const baseUrl = process.env.CHECK_MODEL;
  await world.thread({}, { config, baseUrl, apiKey: "sk-check" }).run("Hello.");
  const [request] = await asked();
  assert.equal(request.path, "/v1/responses");
  assert.equal(request.headers.authorization, "Bearer sk-check");
});

check("env: the client's name goes to the model, and nothing of ours to commands", async (world) => {
  await play({ run: "echo [$CHECK_BINARY] [$MARK]" }, { text: "ok" });
  const turn = await world.thread({}, { env: { MARK: "given" } }).run("Hello.");
  assert.equal((await asked())[0].headers.originator, "codex_sdk_ts");
  assert.match(turn.items.find(({ type }) => type === "command_execution").aggregated_output, /\[\] \[given\]/);
});
