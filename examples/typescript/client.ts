// A client of the app-server: one JSON message per line on the server's stdin and stdout. Which methods exist and what
// they carry comes from the generated types; this file only moves messages.

import { spawn } from "node:child_process";
import type { ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";

import type {
  ClientNotifications,
  ClientRequests,
  JSONRPCErrorError,
  JSONRPCMessage,
  JSONRPCRequest,
  RequestId,
  ServerNotifications,
  ServerRequests,
} from "./protocol";

/** The argument after the method: may be left out where a method has no params. */
type ParamsArgument<P> = undefined extends P ? [params?: P] : [params: P];

type Handler = (params: unknown) => unknown;

interface Waiting {
  method: string;
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

const METHOD_NOT_FOUND = -32601;
const INTERNAL_ERROR = -32603;

/** The server answered a request with an error. */
export class RequestFailed extends Error {
  readonly error: JSONRPCErrorError;

  constructor(method: string, error: JSONRPCErrorError) {
    super(`${method}: ${error.message}`);
    this.error = error;
  }
}

export class Client {
  /** Settles with the reason once no more messages can come. */
  readonly ended: Promise<Error>;

  readonly #server: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting = new Map<RequestId, Waiting>();
  readonly #listeners = new Map<string, Handler[]>();
  readonly #answers = new Map<string, Handler>();
  #lastId = 0;
  #reason: Error | undefined;

  /** Starts a server of its own; what it logs goes to this process's stderr. */
  constructor(command: string, args: string[]) {
    this.#server = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    // A broken pipe needs no handling of its own: the end of stdout tells the same.
    this.#server.stdin.on("error", () => {});
    const failed = new Promise<Error>((resolve) => this.#server.on("error", resolve));
    const finished = this.#readAll().then(
      () => new Error("the server closed the connection"),
      (error: Error) => error,
    );
    this.ended = Promise.race([failed, finished]);
    void this.ended.then((reason) => this.#end(reason));
  }

  /** Asks the server; rejects with `RequestFailed` when it answers with an error. */
  request<M extends keyof ClientRequests>(
    method: M,
    ...[params]: ParamsArgument<ClientRequests[M]["params"]>
  ): Promise<ClientRequests[M]["response"]> {
    if (this.#reason) return Promise.reject(this.#reason);
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const succeed = (result: unknown) => resolve(result as ClientRequests[M]["response"]);
      this.#waiting.set(id, { method, resolve: succeed, reject });
      this.#send({ id, method, params });
    });
  }

  /** Tells the server something. */
  notify<M extends keyof ClientNotifications>(method: M, ...[params]: ParamsArgument<ClientNotifications[M]>): void {
    this.#send({ method, params });
  }

  /** Calls the listener for every notification of this method. */
  on<M extends keyof ServerNotifications>(method: M, listener: (params: ServerNotifications[M]) => void): void {
    const listeners = this.#listeners.get(method) ?? [];
    listeners.push((params) => listener(params as ServerNotifications[M]));
    this.#listeners.set(method, listeners);
  }

  /** Answers every request of this method from the server. Methods without an answer are refused. */
  answer<M extends keyof ServerRequests>(
    method: M,
    handler: (
      params: ServerRequests[M]["params"],
    ) => ServerRequests[M]["response"] | Promise<ServerRequests[M]["response"]>,
  ): void {
    this.#answers.set(method, (params) => handler(params as ServerRequests[M]["params"]));
  }

  /** Says that nothing more will be asked, and waits for the server to end. */
  async close(): Promise<void> {
    this.#server.stdin.end();
    await this.ended;
  }

  async #readAll(): Promise<void> {
    for await (const line of lines(this.#server.stdout)) {
      this.#receive(JSON.parse(line) as JSONRPCMessage);
    }
  }

  #receive(message: JSONRPCMessage): void {
    if ("method" in message) {
      if ("id" in message) {
        void this.#reply(message);
      } else {
        for (const listener of this.#listeners.get(message.method) ?? []) listener(message.params);
      }
      return;
    }
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if ("error" in message) {
      waiting?.reject(new RequestFailed(waiting.method, message.error));
    } else {
      waiting?.resolve(message.result);
    }
  }

  async #reply({ id, method, params }: JSONRPCRequest): Promise<void> {
    const handler = this.#answers.get(method);
    if (!handler) {
      this.#send({ id, error: { code: METHOD_NOT_FOUND, message: `this client has no answer to ${method}` } });
      return;
    }
    try {
      this.#send({ id, result: await handler(params) });
    } catch (error) {
      this.#send({ id, error: { code: INTERNAL_ERROR, message: String(error) } });
    }
  }

  #send(message: object): void {
    this.#server.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #end(reason: Error): void {
    this.#reason = reason;
    for (const { reject } of this.#waiting.values()) reject(reason);
    this.#waiting.clear();
  }
}

/** Split at line feeds alone: `node:readline` also splits at characters that a JSON string may contain as they are. */
async function* lines(stream: Readable): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of stream.setEncoding("utf8") as AsyncIterable<string>) {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
}
