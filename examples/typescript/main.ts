// Starts a thread, asks it one thing and prints the answer while it is written.

import { Client } from "./client.js";
import type { Turn } from "./protocol";

const question = process.argv.slice(2).join(" ") || "What is in this folder?";

const client = new Client(process.env["OARLOCK"] ?? "oarlock", ["app-server"]);

client.on("item/agentMessage/delta", ({ delta }) => {
  process.stdout.write(delta);
});
client.on("item/started", ({ item }) => {
  if (item.type === "commandExecution") console.error(`\n[runs ${item.command}]`);
});
client.on("error", ({ error, willRetry }) => {
  console.error(`\n[${error.message}${willRetry ? "; trying again" : ""}]`);
});

// A real client shows these to its user.
client.answer("item/commandExecution/requestApproval", ({ command }) => {
  console.error(`\n[declined to run ${command ?? "a command"}]`);
  return { decision: "decline" };
});
client.answer("item/fileChange/requestApproval", ({ reason }) => {
  console.error(`\n[declined to change files: ${reason ?? "no reason given"}]`);
  return { decision: "decline" };
});

/** Runs one turn to its end. */
async function ask(threadId: string, text: string): Promise<Turn> {
  // Listened for before the turn starts, so that even the shortest turn is not missed.
  const completed = new Promise<Turn>((resolve) => {
    client.on("turn/completed", (params) => {
      if (params.threadId === threadId) resolve(params.turn);
    });
  });
  await client.request("turn/start", { threadId, input: [{ type: "text", text }] });
  const outcome = await Promise.race([completed, client.ended]);
  if (outcome instanceof Error) throw outcome;
  return outcome;
}

try {
  const server = await client.request("initialize", {
    clientInfo: { name: "oarlock_example", title: "Oarlock example", version: "0.1.0" },
  });
  client.notify("initialized");
  console.error(`[connected to ${server.userAgent}]`);

  const { thread, model } = await client.request("thread/start", { cwd: process.cwd(), sandbox: "read-only" });
  console.error(`[thread ${thread.id} with ${model}]`);

  const turn = await ask(thread.id, question);
  process.stdout.write("\n");
  if (turn.status !== "completed") throw new Error(`turn ${turn.status}: ${turn.error?.message ?? "no reason given"}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
await client.close();
