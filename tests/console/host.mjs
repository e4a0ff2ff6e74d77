// A real host with the offline model, and a client on the socket beside its store that puts tasks into it.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Nothing is late because the machine is: a check that fails for want of time waited in vain. */
export const PATIENCE_MS = 300_000;
/** With CONSOLE_STRICT=1, on a machine with nothing else to do, times must be good. Else they are told, and only sane. */
export const STRICT = process.env.CONSOLE_STRICT !== undefined;
const LOOK_AGAIN_MS = 50;

/** Looks again and again until what is looked for is there. */
export async function eventually(look, what) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

/** Starts `oarlock demo --console`, which has tasks in all states. */
export async function startDemo(binary) {
  const folder = mkdtempSync(join(tmpdir(), "oarlock-console-demo-"));
  const demo = spawn(binary, ["demo", "--console", "--port", "0"], { env: { ...process.env, TMPDIR: folder }, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => demo.once("exit", resolve));
  const close = async () => {
    demo.kill("SIGINT");
    const code = await ended;
    const left = readdirSync(folder);
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    return { code, left };
  };
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: demo.stdout }).on("line", (line) => line.trim().startsWith("http://") && resolve(line.trim()));
    void ended.then((code) => reject(new Error(`the demo ended with ${code}`)));
  });
  return { url, close };
}

export class TestHost {
  constructor(binary, kind = "host", provider = "offline") {
    this.binary = binary;
    this.provider = provider;
    this.kind = kind;
    this.folder = mkdtempSync(join(tmpdir(), "oarlock-console-"));
    this.workspace = join(this.folder, "workspace");
    this.home = join(this.folder, "home");
    this.scratch = join(this.folder, "tmp");
    for (const folder of [this.workspace, this.home, this.scratch]) mkdirSync(folder);
    this.port = 0;
  }

  /** Starts it, or starts it again on the same port and store. */
  async start(...more) {
    const listen = ["--listen", `ws://127.0.0.1:${this.port}`];
    const own = ["host", "--provider", this.provider, "--store", `sqlite:${join(this.folder, "tasks.sqlite")}`];
    const args = this.kind === "host" ? [...own, ...listen] : ["app-server", "-c", "model_provider=offline", ...listen];
    this.process = spawn(this.binary, [...args, "-c", "allow_login_shell=false", ...more], {
      // Processes that are killed leave temporary files, which go with the folder.
      env: { ...process.env, OARLOCK_HOME: this.home, HOME: this.home, TMPDIR: this.scratch },
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.log = "";
    const address = await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`the ${this.kind} did not start: ${this.log}`)), PATIENCE_MS);
      createInterface({ input: this.process.stderr }).on("line", (line) => {
        this.log += `${line}\n`;
        const found = /listening on: ws:\/\/(\S+)/.exec(line);
        if (found) {
          clearTimeout(timer);
          resolve(found[1]);
        }
      });
      this.process.on("exit", (code) => reject(new Error(`the ${this.kind} ended with ${code}: ${this.log}`)));
    });
    this.port = Number(address.split(":").at(-1));
    this.url = `http://127.0.0.1:${this.port}/`;
  }

  async kill(signal = "SIGKILL") {
    if (this.process === undefined || this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill(signal);
    await ended;
  }

  async close() {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  async client() {
    const client = new LineClient(join(this.folder, "tasks.sqlite.sock"));
    await client.open();
    return client;
  }
}

/** Speaks lines to the host's Unix socket. */
class LineClient {
  constructor(path) {
    this.path = path;
    this.waiting = new Map();
    this.lastId = 0;
    this.heard = [];
    this.watchers = new Set();
  }

  async open() {
    this.socket = await new Promise((resolve, reject) => {
      const socket = net.connect(this.path, () => resolve(socket));
      socket.on("error", reject);
    });
    createInterface({ input: this.socket }).on("line", (line) => this.read(JSON.parse(line)));
    const host = { versions: [1], allTasks: true };
    await this.ask("initialize", { clientInfo: { name: "tests", version: "1" }, capabilities: { experimentalApi: true, host } });
  }

  read(message) {
    if (message.method !== undefined) {
      this.heard.push(message);
      for (const watcher of this.watchers) watcher();
      return;
    }
    const { resolve, reject } = this.waiting.get(message.id) ?? {};
    this.waiting.delete(message.id);
    if (message.error) reject?.(new Error(JSON.stringify(message.error)));
    else resolve?.(message.result);
  }

  ask(method, params) {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.socket.write(`${JSON.stringify({ id, method, params })}\n`);
    });
  }

  /** The first message, past or future, that fits. */
  until(fits, what) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), PATIENCE_MS);
      const look = () => {
        const found = this.heard.find(fits);
        if (found === undefined) return;
        clearTimeout(timer);
        this.watchers.delete(look);
        resolve(found);
      };
      this.watchers.add(look);
      look();
    });
  }

  /** Starts a task; waits until its turn is over or something waits for a decision. */
  async task(cwd, text, options = {}) {
    const { name, ...settings } = options;
    const opened = await this.ask("thread/start", { cwd, approvalPolicy: "never", sandbox: "workspace-write", ...settings });
    const id = opened.thread.id;
    await this.ask("turn/start", { threadId: id, input: [{ type: "text", text }] });
    await this.until(
      ({ method, params }) =>
        (method === "turn/completed" && params.threadId === id) ||
        (method === "operation/updated" && params.operation.taskId === id && params.operation.state === "proposed"),
      `the turn of ${text}`,
    );
    if (name !== undefined) await this.ask("thread/name/set", { threadId: id, name });
    return id;
  }

  async task_state(id) {
    return (await this.ask("task/read", { threadId: id })).task.state;
  }

  close() {
    this.socket.destroy();
  }
}
