// One check: its own home, workspace and script of the model; and the list of checks.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { Codex } from "@openai/codex-sdk";

const { CHECK_BINARY, CHECK_WORK, CHECK_MODEL, CHECK_CONFIG } = process.env;
const CHECK_MS = 40_000;
const CONTROL = CHECK_MODEL.replace(/\/v1$/, "/control");

export const checks = [];
export const check = (name, run) => checks.push({ name, run });

async function control(verb, method = "POST", body = undefined) {
  const answer = await fetch(`${CONTROL}/${verb}`, { method, body: body && JSON.stringify(body) });
  return answer.json();
}

export const play = (...steps) => control("script", "POST", steps);
export const release = () => control("release");
export const report = () => control("report", "GET");
export const asked = async () => (await report()).requests;

export class World {
  constructor() {
    this.root = fs.mkdtempSync(path.join(CHECK_WORK, "typescript-"));
    this.home = path.join(this.root, "home");
    this.cwd = path.join(this.root, "workspace");
    fs.mkdirSync(this.home);
    fs.mkdirSync(this.cwd);
    // `exec` wants a repository of its own to work in.
    execFileSync("git", ["init", "--quiet"], { cwd: this.cwd });
    const config = fs.readFileSync(CHECK_CONFIG, "utf8").replaceAll("{base_url}", CHECK_MODEL);
    fs.writeFileSync(path.join(this.home, "config.toml"), config);
  }

  /** How a user points the client at another binary. */
  codex(options = {}) {
    const { PATH, LANG, HTTP_PROXY, HTTPS_PROXY, NO_PROXY } = process.env;
    const given = { PATH, LANG, HTTP_PROXY, HTTPS_PROXY, NO_PROXY, HOME: this.root };
    const env = { ...given, CODEX_HOME: this.home, OARLOCK_HOME: this.home, ...options.env };
    const defined = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined));
    return new Codex({ codexPathOverride: CHECK_BINARY, ...options, env: defined });
  }

  /** A new thread in the workspace. */
  thread(options = {}, codexOptions = {}) {
    return this.codex(codexOptions).startThread({ workingDirectory: this.cwd, ...options });
  }
}

export const texts = (request) =>
  request.body.input.flatMap((item) => (item.content ?? []).map((part) => part.text).filter(Boolean));

/** The words of the user and the model in a request, without the context that the server adds. */
export const conversation = (request) =>
  request.body.input
    .filter((item) => item.type === "message" && ["user", "assistant"].includes(item.role))
    .flatMap((item) => texts({ body: { input: [item] } }))
    .filter((text) => !/^\s*(<|# AGENTS)/.test(text));

export async function collect(events) {
  const seen = [];
  for await (const event of events) seen.push(event);
  return seen;
}

export async function eventually(condition, what, ms = 10_000) {
  const deadline = Date.now() + ms;
  for (;;) {
    const value = await condition();
    if (value) return value;
    assert.ok(Date.now() < deadline, `not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Whether a process is there and no zombie. */
export function alive(pid) {
  try {
    return fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)[0] !== "Z";
  } catch {
    return false;
  }
}

/** Prints one line: `ok` or `FAIL`, the name, and what is wrong. */
export async function runCheck({ name, run }) {
  const world = new World();
  const started = Date.now();
  const problems = [];
  let timer;
  let crash;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${CHECK_MS / 1000} s`)), CHECK_MS);
    // A program that is gone before it has its prompt brings the client down with it.
    crash = reject;
    process.on("uncaughtException", crash);
  });
  await play();
  try {
    await Promise.race([run(world), late]);
  } catch (error) {
    const place = /(\w+\.mjs:\d+):\d+\)?$/m.exec(error.stack ?? "")?.[1] ?? "?";
    problems.push(`${error.name}: ${error.message.replace(/\s+/g, " ").slice(0, 500)} (${place})`);
  }
  clearTimeout(timer);
  process.off("uncaughtException", crash);
  const { unused, unexpected } = await report();
  if (unexpected.length > 0) problems.push(`unexpected model requests: ${unexpected.join(", ")}`);
  if (unused > 0) problems.push(`${unused} steps of the model's script were not asked for`);
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  if (problems.length === 0) {
    console.log(`ok    typescript: ${name} (${seconds} s)`);
    await fs.promises.rm(world.root, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  } else {
    console.log(`FAIL  typescript: ${name} (${seconds} s): ${problems.join("; ")}`);
    console.log(`      files: ${world.root}`);
  }
  return problems.length === 0;
}
