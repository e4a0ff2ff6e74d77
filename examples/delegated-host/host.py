#!/usr/bin/env python3
"""A small host: it talks to the model provider, decides, and keeps the record. The runtime does the rest.

    host.py --record task.jsonl "run echo hello >> hello.txt"

Ctrl-C at any moment, then start it again with the same record: it goes on where it was.
"""

import argparse
import itertools
import json
import os
import queue
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from record import Answers, Json, Record, Refused, error

FEATURES = ["modelTransport", "clientRollout", "operations"]
PROVIDER = {"id": "example", "capabilities": {"wire": "responses", "freeformTools": True}}
BATCH_BYTES = 32 * 1024
ATTEMPTS = 3
# How long an answer that is being paid for is still read when the host is about to end.
LAST_WORDS_SECONDS = 10
APPROVALS = ("item/commandExecution/requestApproval", "item/fileChange/requestApproval")


class Upstream:
    """Any endpoint that speaks the Responses API. Only the host knows where it is and which key it takes."""

    def __init__(self, url: str, key: str | None) -> None:
        self.url, self.key = url.rstrip("/") + "/responses", key

    def events(self, body: Json) -> Any:
        """Streams events; failures before the first are tried again if that may help."""
        headers = {"content-type": "application/json", "accept": "text/event-stream"}
        headers |= {"authorization": f"Bearer {self.key}"} if self.key else {}
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        for attempt in itertools.count(1):
            try:
                response = urllib.request.urlopen(request)
                break
            except urllib.error.HTTPError as failure:
                if attempt == ATTEMPTS or failure.code != 429 and failure.code < 500:
                    raise
                time.sleep(float(failure.headers.get("retry-after") or attempt))
        with response:
            for line in response:
                if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
                    yield json.loads(line[5:])


class Host:
    """One connection to a runtime. The reader only routes; what takes time happens elsewhere."""

    def __init__(self, runtime: str, record: Record, answers: Answers, upstream: Upstream) -> None:
        self.record, self.answers, self.upstream = record, answers, upstream
        # A session of its own, so that Ctrl-C is the host's alone.
        self.process = subprocess.Popen(
            [runtime, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.numbers = itertools.count(1)
        self.waiting: dict[int, Future[Json]] = {}
        self.carried: dict[str, queue.SimpleQueue[Any]] = {}
        self.reading: list[threading.Thread] = []
        self.duties: queue.SimpleQueue[Json] = queue.SimpleQueue()
        self.news: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        self.writing = threading.Lock()
        for work in (self.read, self.serve):
            threading.Thread(target=work, daemon=True).start()

    # ---- the wire ----

    def write(self, message: Json) -> None:
        assert self.process.stdin
        with self.writing:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def ask(self, method: str, params: Json) -> Json:
        number = next(self.numbers)
        # Kept here too: the answer may be read, and its place cleared, before anything else happens on this thread.
        answer: Future[Json] = Future()
        self.waiting[number] = answer
        self.write({"id": number, "method": method, "params": params})
        return answer.result()

    def answer(self, message: Json, result: Json) -> None:
        self.write({"id": message["id"], "result": result})

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            message = json.loads(line)
            method = message.get("method")
            if method is None:
                waiting = self.waiting.pop(message["id"])
                if "error" in message:
                    waiting.set_exception(Refused(message["error"]))
                else:
                    waiting.set_result(message["result"])
            elif method in ("rollout/append", "model/request", "model/cancel"):
                self.duties.put(message)
            else:
                self.news.put(message)
        for waiting in self.waiting.values():
            waiting.set_exception(Refused(error("the runtime ended")))
        self.news.put(None)

    # ---- what a host is there for ----

    def serve(self) -> None:
        while True:
            message = self.duties.get()
            params = message["params"]
            try:
                if message["method"] == "rollout/append":
                    self.answer(message, self.record.append(params))
                elif message["method"] == "model/cancel":
                    events = self.carried.get(params["modelRequestId"])
                    self.answer(message, {"disposition": "canceled" if events else "alreadyTerminal"})
                    if events:
                        events.put("canceled")
                else:
                    self.carry(message, params)
            except Refused as refused:
                self.write({"id": message["id"], "error": refused.error})

    def carry(self, message: Json, params: Json) -> None:
        """The answer is at once; events follow. What was paid for before a crash is not asked for a second time."""
        events = self.carried[params["modelRequestId"]] = queue.SimpleQueue()
        kept = self.answers.find(params)
        accepted = {"disposition": "accepted", "provider": PROVIDER["id"], "model": params["body"]["model"]}
        self.answer(message, {**accepted, "replayed": kept is not None})
        if kept is None:
            self.reading.append(threading.Thread(target=self.fetch, args=(params,), daemon=True))
            self.reading[-1].start()
        else:
            print("[answered from the record: the provider is not asked again]", flush=True)
            for event in kept:
                events.put(event)
        threading.Thread(target=self.forward, args=(params,), daemon=True).start()

    def finish_reading(self) -> None:
        """An answer that is on its way is kept for the next host, whether or not a runtime is there to hear it."""
        end = time.monotonic() + LAST_WORDS_SECONDS
        for thread in self.reading:
            thread.join(max(0, end - time.monotonic()))

    def fetch(self, params: Json) -> None:
        """From the provider into a queue: events, then what ended them if that was not an event."""
        events, heard = self.carried[params["modelRequestId"]], []
        try:
            for event in self.upstream.events(params["body"]):
                heard.append(event)
                if event["type"] == "response.completed":
                    self.answers.keep(params, heard)
                events.put(event)
            events.put("disconnected")
        except urllib.error.HTTPError as failure:
            events.put(failure)
        except (OSError, ValueError) as failure:
            print(f"\n[the provider: {failure}]", file=sys.stderr)
            events.put("disconnected")

    def forward(self, params: Json) -> None:
        """From the queue to the runtime, as many at a time as have come and there is credit for."""
        ids = {"threadId": params["threadId"], "modelRequestId": params["modelRequestId"]}
        events, credit, seq, end = self.carried[params["modelRequestId"]], params["window"], 0, None
        batch, size = [], 0
        while end is None:
            event = events.get()
            if isinstance(event, dict):
                batch.append(event)
                size += len(json.dumps(event))
                if event["type"] in ("response.completed", "response.failed", "response.incomplete", "error"):
                    end = "terminal"
            else:
                end = event
            is_full = len(batch) >= credit["events"] or size >= min(BATCH_BYTES, credit["bytes"] // 2)
            if batch and (is_full or events.empty() or end is not None):
                acknowledged = self.ask("model/streamEvent", {**ids, "seq": seq, "events": batch})
                seq, credit = acknowledged["nextSeq"], acknowledged["credit"]
                batch, size = [], 0
        del self.carried[params["modelRequestId"]]
        if isinstance(end, urllib.error.HTTPError):
            said = {"code": "providerError", "message": f"HTTP {end.code}: {end.read(500).decode(errors='replace')}"}
            self.ask("model/requestRejected", {**ids, "error": {**said, "httpStatus": end.code, "replaySafe": False}})
        elif end != "terminal":
            self.ask("model/streamAborted", {**ids, "seq": seq, "reason": end, "replaySafe": end == "disconnected"})

    # ---- the conversation ----

    def open(self, options: argparse.Namespace) -> str:
        offer = {"versions": [1], "features": FEATURES}
        client = {"name": "delegated-host", "title": None, "version": "1"}
        capabilities = {"experimentalApi": True, "hostDelegation": offer}
        agreed = self.ask("initialize", {"clientInfo": client, "capabilities": capabilities})
        if "hostDelegation" not in agreed.get("capabilities", {}):
            raise SystemExit("RuntimeMismatch: this runtime does not delegate to hosts")
        self.write({"method": "initialized"})
        terms = {"mode": "full", "version": 1, "hostEpoch": self.record.epoch, "provider": PROVIDER}
        params = {"delegation": terms, "rolloutOwnership": "client", "model": options.model}
        params |= {"approvalPolicy": "untrusted", "sandbox": options.sandbox, "cwd": os.getcwd()}
        thread = self.record.thread()
        if thread:
            params |= {"threadId": thread, "initialItems": self.record.items, "resumeTurn": True}
        opened = self.ask("thread/resume" if thread else "thread/start", params)
        if (opened["rolloutOwnership"], opened["delegation"]["mode"]) != ("client", "full"):
            raise SystemExit("RuntimeMismatch: the thread was not opened as asked")
        for operation in opened.get("pendingOperations") or []:
            print(f"[pending since before: {operation['tool']}, {operation['state']}]", flush=True)
        return str(opened["thread"]["id"])

    def follow(self) -> None:
        """Shows the turn until it is over, and asks the person where the runtime must."""
        while message := self.news.get():
            method, params = message.get("method"), message.get("params") or {}
            if method == "item/agentMessage/delta":
                print(params["delta"], end="", flush=True)
            elif method == "item/completed" and params["item"]["type"] == "commandExecution":
                print(f"[{params['item']['status']}: {params['item']['command']!r}]", flush=True)
            elif method == "turn/completed":
                problem = params["turn"].get("error") or {}
                print(f"\n[{params['turn']['status']}] {problem.get('message', '')}".rstrip(), flush=True)
                return
            elif method in APPROVALS:
                self.answer(message, {"decision": decide(params)})
            elif "id" in message:
                self.write({"id": message["id"], "error": error(f"this host does not do {method}", -32601)})
        raise SystemExit("the runtime ended; start again to go on")


def decide(params: Json) -> Any:
    """Asks the person. What comes from the model is shown escaped, so that it cannot draw on the terminal."""
    what = params.get("command") or "change files"
    print(f"Allow {what!r}? [y]es, [n]o, or [i]nstead COMMAND: ", end="", flush=True)
    while line := sys.stdin.readline():
        word, _, rest = line.strip().partition(" ")
        if word.lower() in ("y", "yes"):
            return "accept"
        if word.lower() in ("n", "no"):
            return "decline"
        if word.lower() in ("i", "instead") and rest and "command" in params:
            return {"acceptWithCommandOverride": {"command": shlex.split(rest)}}
        print("y, n, or i and a command: ", end="", flush=True)
    raise KeyboardInterrupt  # Nobody is there. That is no answer, so it stays pending.


def find_runtime() -> str:
    built = Path(__file__).resolve().parents[2] / "target/debug/oarlock"
    return shutil.which("oarlock") or str(built)


def stop(child: "subprocess.Popen[bytes]") -> None:
    """The runtime ends with its input and takes its commands along; the model ends when told to."""
    if child.stdin:
        with suppress(OSError):
            child.stdin.close()
    else:
        child.terminate()
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompt", nargs="?", help="what to do; without it, an unfinished turn is only continued")
    parser.add_argument("--record", type=Path, default=Path("task.jsonl"), help="where the thread is kept")
    parser.add_argument("--runtime", default=find_runtime(), help="the oarlock binary")
    parser.add_argument("--upstream", help="base URL of a Responses API; the offline model unless given")
    parser.add_argument("--key-env", default="OPENAI_API_KEY", help="the variable that holds the key for it")
    parser.add_argument("--model", default="offline", help="the model to ask for")
    parser.add_argument("--sandbox", default="workspace-write", help="for the commands of the model")
    options = parser.parse_args()
    # A shell may have started us in the background, deaf to it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    children: list[subprocess.Popen[bytes]] = []
    host: Host | None = None
    try:
        upstream = Upstream(options.upstream or "", os.environ.get(options.key_env))
        if not options.upstream:
            command = [options.runtime, "offline-model", "--listen", "127.0.0.1:0"]
            children.append(subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True))
            assert children[0].stdout
            upstream = Upstream(children[0].stdout.readline().decode().strip(), None)
        record = Record(options.record)
        answers = Answers(options.record.with_name(options.record.name + ".answers"))
        host = Host(options.runtime, record, answers, upstream)
        children.append(host.process)
        goes_on = record.unfinished()
        thread = host.open(options)
        if goes_on:
            host.follow()
        if options.prompt:
            content = [{"type": "text", "text": options.prompt}]
            host.ask("turn/start", {"threadId": thread, "input": content})
            host.follow()
    except KeyboardInterrupt:
        print("\n[stopped; start again with the same --record to go on]", flush=True)
    except Refused as refused:
        raise SystemExit(f"the runtime refused: {refused}") from None
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if host:
            host.finish_reading()
        for child in reversed(children):
            stop(child)


if __name__ == "__main__":
    main()
