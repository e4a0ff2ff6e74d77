"""Trace context on every request, spans of turns and tools, and logging for those who look for a problem."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags

from oarlock import Agent, tool
from oarlock._connection import Connection
from oarlock._tracing import log_if_wanted
from oarlock.testing import Call, Fail, ScriptedModel, offline_host

TRACE = 0xABC
PARENT = NonRecordingSpan(SpanContext(TRACE, 0x1, is_remote=False, trace_flags=TraceFlags(1)))


class KeptSpan(NonRecordingSpan):
    def __init__(self, number: int, name: str, parent: SpanContext, attributes: Any) -> None:
        super().__init__(SpanContext(parent.trace_id, number, is_remote=False, trace_flags=TraceFlags(1)))
        self.name, self.parent, self.attributes = name, parent.span_id, dict(attributes or {})
        self.status: StatusCode | None = None
        self.is_ended = False

    def set_attributes(self, attributes: Any) -> None:
        self.attributes |= attributes

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.status = status

    def end(self, end_time: int | None = None) -> None:
        self.is_ended = True


class KeptSpans(trace.Tracer):
    """A tracer that keeps its spans, by the API alone."""

    def __init__(self) -> None:
        self.spans: list[KeptSpan] = []

    def start_span(self, name: str, context: Context | None = None, *_: Any, **options: Any) -> KeptSpan:
        parent = trace.get_current_span(context).get_span_context()
        self.spans.append(KeptSpan(0x10 + len(self.spans), name, parent, options.get("attributes")))
        return self.spans[-1]

    @contextmanager
    def start_as_current_span(self, name: str, *_: Any, **options: Any) -> Iterator[KeptSpan]:  # type: ignore[override]
        raise NotImplementedError
        yield


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> KeptSpans:
    spans = KeptSpans()
    monkeypatch.setattr(trace, "get_tracer", lambda *_: spans)
    return spans


@tool(effects="readonly")
def weather(city: str) -> str:
    """Today's weather in a city."""
    return f"{city}: {trace.get_current_span().get_span_context().span_id:x}"


AGENT: Agent[object] = Agent(name="cyclist", tools=[weather], tool_set="replace")


@pytest.mark.anyio
async def test_a_turn_and_its_tools_are_spans(kept: KeptSpans, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []
    send = Connection._send

    async def noting(self: Connection, message: Any) -> None:
        if "method" in message and "id" in message:
            sent.append((message["method"], message.get("trace", {}).get("traceparent", "")))
        await send(self, message)

    monkeypatch.setattr(Connection, "_send", noting)
    model = ScriptedModel(Call("weather", {"city": "Utrecht"}), "dry")
    async with offline_host(model) as host:
        with trace.use_span(PARENT):
            task = await host.start(AGENT, task_id="A-17")
            result = await task.run("Shall I cycle?", timeout=60)
    turn, called = kept.spans
    assert (turn.name, turn.parent, turn.is_ended, turn.status) == ("oarlock.turn", 0x1, True, None)
    assert turn.attributes["oarlock.task_id"] == "A-17"
    assert turn.attributes["oarlock.turn_id"] == result.turn_id
    assert turn.attributes["oarlock.status"] == "completed"
    assert (called.name, called.parent, called.is_ended) == ("oarlock.tool", 0x10, True)
    assert called.attributes["oarlock.tool"] == "weather"
    # The tool itself runs within its span, also in a thread.
    assert model.seen[1].last_output == "Utrecht: 11"
    by_method = dict(sent)
    assert by_method["thread/start"] == f"00-{TRACE:032x}-{1:016x}-01"
    assert by_method["turn/start"] == f"00-{TRACE:032x}-{0x10:016x}-01"


@contextmanager
def collector(spans: list[tuple[str, Any]]) -> Iterator[str]:
    """The address of a server that keeps spans, each with the program that it is of."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            [sent] = json.loads(self.rfile.read(int(self.headers["content-length"])))["resourceSpans"]
            words = {word["key"]: word["value"].get("stringValue") for word in sent["resource"]["attributes"]}
            spans.extend((words["oarlock.component"], span) for span in sent["scopeSpans"][0]["spans"])
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.anyio
async def test_host_and_runtime_join_the_trace_of_the_program(kept: KeptSpans, monkeypatch: pytest.MonkeyPatch) -> None:
    spans: list[tuple[str, Any]] = []
    with collector(spans) as address:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        async with offline_host(ScriptedModel("dry")) as host:
            with trace.use_span(PARENT):
                await host.run(AGENT, "Shall I cycle?", timeout=60)
    [own] = kept.spans
    assert all(span["traceId"] == f"{TRACE:032x}" for _, span in spans)
    [turn] = [span for part, span in spans if (part, span["name"]) == ("app-server", "turn")]
    [task] = [span for part, span in spans if part == "host" and span["spanId"] == turn["parentSpanId"]]
    assert (task["name"], task["parentSpanId"]) == ("task", f"{own.get_span_context().span_id:016x}")


@pytest.mark.anyio
async def test_a_failed_turn_is_a_failed_span(kept: KeptSpans) -> None:
    async with offline_host(ScriptedModel(Fail("down"))) as host:
        await host.run(AGENT, "go", timeout=60)
    [turn] = kept.spans
    assert (turn.is_ended, turn.status) == (True, StatusCode.ERROR)


def test_nothing_is_loaded_for_programs_without_traces() -> None:
    program = "import sys, oarlock._connection as c; assert c.trace_context() is None; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment()
    )
    assert "opentelemetry" not in said.stdout


def environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def test_debug_is_for_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    log = logging.getLogger("oarlock")
    before, level = list(log.handlers), log.level
    try:
        monkeypatch.setenv("OARLOCK_DEBUG", "0")
        log_if_wanted()
        assert log.handlers == before
        monkeypatch.setenv("OARLOCK_DEBUG", "1")
        log_if_wanted()
        log_if_wanted()
        [added] = [handler for handler in log.handlers if handler not in before]
        assert isinstance(added, logging.StreamHandler) and log.level == logging.DEBUG
    finally:
        log.handlers, log.level = before, level
