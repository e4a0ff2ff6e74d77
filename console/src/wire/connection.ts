// One websocket to the server that this page came from. It reconnects by itself; whoever needs the state of the server
// again after that listens for `onReady`.

import { signal } from "@preact/signals";

import type {
  ClientRequests,
  InitializeResponse,
  JSONRPCErrorError,
  RequestId,
  ServerNotifications,
} from "../../protocol";
import { hasToken, protocols } from "./token";

type ParamsArgument<P> = undefined extends P ? [params?: P] : [params: P];

export type Notice = {
  [M in keyof ServerNotifications]: { method: M; params: ServerNotifications[M] };
}[keyof ServerNotifications];

export interface ServerQuestion {
  id: RequestId;
  method: string;
  params: unknown;
}

export class RequestFailed extends Error {
  constructor(
    readonly method: string,
    readonly error: JSONRPCErrorError,
  ) {
    super(error.message);
  }
}

/** The connection ended before the answer. The request may or may not have been carried out. */
export class ConnectionLost extends Error {
  constructor() {
    super("the connection was lost; what was asked may or may not have happened");
  }
}

export type LinkState =
  | { type: "connecting"; attempt: number }
  | { type: "ready" }
  | { type: "waiting"; untilMs: number; attempt: number }
  | { type: "refused" };

interface Waiting {
  method: string;
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

const FIRST_PAUSE_MS = 300;
const LONGEST_PAUSE_MS = 8_000;
/** Attempts that never opened before the form asks for a token. A browser does not tell why a websocket failed. */
const ATTEMPTS_BEFORE_FORM = 2;

export class Connection {
  readonly state = signal<LinkState>({ type: "connecting", attempt: 0 });
  readonly server = signal<InitializeResponse | undefined>(undefined);

  #socket: WebSocket | undefined;
  #lastId = 0;
  #attempt = 0;
  #everOpened = false;
  #retry: ReturnType<typeof setTimeout> | undefined;
  readonly #waiting = new Map<RequestId, Waiting>();
  readonly #ready: (() => void)[] = [];
  readonly #notices: ((notice: Notice) => void)[] = [];
  readonly #questions: ((question: ServerQuestion) => void)[] = [];

  get isHost(): boolean {
    return this.server.value?.capabilities?.host != null;
  }

  onReady(listener: () => void): void {
    this.#ready.push(listener);
  }

  onNotice(listener: (notice: Notice) => void): void {
    this.#notices.push(listener);
  }

  onQuestion(listener: (question: ServerQuestion) => void): void {
    this.#questions.push(listener);
  }

  connect(): void {
    clearTimeout(this.#retry);
    this.state.value = { type: "connecting", attempt: this.#attempt };
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/`, protocols());
    this.#socket = socket;
    socket.onopen = () => void this.#opened(socket);
    socket.onmessage = (event) => this.#read(socket, event.data);
    socket.onclose = () => this.#closed(socket);
  }

  /** Tries again now instead of after the pause. */
  reconnectNow(): void {
    if (this.state.value.type === "ready") return;
    this.#attempt = 0;
    this.connect();
  }

  request<M extends keyof ClientRequests>(
    method: M,
    ...[params]: ParamsArgument<ClientRequests[M]["params"]>
  ): Promise<ClientRequests[M]["response"]> {
    const socket = this.#socket;
    if (socket?.readyState !== WebSocket.OPEN) return Promise.reject(new ConnectionLost());
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { method, resolve: (result) => resolve(result as never), reject });
      socket.send(JSON.stringify({ id, method, params }));
    });
  }

  answer(id: RequestId, result: unknown): void {
    this.#socket?.send(JSON.stringify({ id, result }));
  }

  async #opened(socket: WebSocket): Promise<void> {
    this.#everOpened = true;
    try {
      this.server.value = await this.request("initialize", {
        clientInfo: { name: "oarlock_console", title: "Oarlock console", version: "1" },
        capabilities: { experimentalApi: true, host: { versions: [1], allTasks: true } },
      });
    } catch {
      socket.close();
      return;
    }
    socket.send(JSON.stringify({ method: "initialized" }));
    this.#attempt = 0;
    this.state.value = { type: "ready" };
    for (const listener of this.#ready) listener();
  }

  #read(socket: WebSocket, data: unknown): void {
    if (socket !== this.#socket || typeof data !== "string") return;
    const message = JSON.parse(data) as {
      id?: RequestId;
      method?: string;
      params?: unknown;
      result?: unknown;
      error?: JSONRPCErrorError;
    };
    if (message.method !== undefined && message.id !== undefined) {
      const question = { id: message.id, method: message.method, params: message.params };
      for (const listener of this.#questions) listener(question);
    } else if (message.method !== undefined) {
      for (const listener of this.#notices) listener(message as Notice);
    } else if (message.id !== undefined) {
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.error !== undefined) waiting?.reject(new RequestFailed(waiting.method, message.error));
      else waiting?.resolve(message.result);
    }
  }

  #closed(socket: WebSocket): void {
    if (socket !== this.#socket) return;
    const lost = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const waiting of lost) waiting.reject(new ConnectionLost());
    this.#attempt += 1;
    if (!this.#everOpened && this.#attempt >= ATTEMPTS_BEFORE_FORM) {
      this.state.value = { type: "refused" };
      // A server that asks for no token may only be starting.
      if (hasToken()) return;
    }
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#attempt - 1, 5));
    const jittered = pause * (0.75 + Math.random() / 2);
    if (this.state.value.type !== "refused") {
      this.state.value = { type: "waiting", untilMs: Date.now() + jittered, attempt: this.#attempt };
    }
    this.#retry = setTimeout(() => this.#again(), jittered);
  }

  #again(): void {
    const isRefused = this.state.value.type === "refused";
    this.connect();
    if (isRefused) this.state.value = { type: "refused" };
  }
}

export const connection = new Connection();
