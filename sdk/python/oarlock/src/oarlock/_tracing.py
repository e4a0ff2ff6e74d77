"""Spans and trace context by the OpenTelemetry API. Loads nothing in a program that has not loaded it itself."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_DEBUG = "OARLOCK_DEBUG"


def is_traced() -> bool:
    """A program that exports traces has the API loaded; for others every span would be lost."""
    return "opentelemetry.trace" in sys.modules


def trace_context() -> Mapping[str, str] | None:
    """The current span as `traceparent` and `tracestate`, for the envelope of a request."""
    if not is_traced():
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier or None


def start_span(name: str, parent: Span | None = None, **attributes: str) -> Span | None:
    """A span that `end_span` ends, below `parent` or the current one."""
    if not is_traced():
        return None
    from opentelemetry import trace

    context = trace.set_span_in_context(parent) if parent is not None else None
    return trace.get_tracer("oarlock").start_span(name, context, attributes=_named(attributes))


def end_span(span: Span | None, *, error: str | None = None, **attributes: str) -> None:
    """Ends it; once more does nothing."""
    if span is None:
        return
    if error is not None:
        from opentelemetry.trace import StatusCode

        span.set_status(StatusCode.ERROR, error)
    span.set_attributes(_named(attributes))
    span.end()


@contextmanager
def within(span: Span | None) -> Iterator[None]:
    """Requests and spans of this block belong to the span."""
    if span is None:
        yield
        return
    from opentelemetry.trace import use_span

    with use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
        yield


def _named(attributes: Mapping[str, Any]) -> dict[str, str]:
    return {f"oarlock.{name}": value for name, value in attributes.items() if value}


def log_if_wanted() -> None:
    """With OARLOCK_DEBUG=1, everything that the package logs goes to standard error."""
    log = logging.getLogger("oarlock")
    if os.environ.get(_DEBUG) != "1" or any(handler.name == _DEBUG for handler in log.handlers):
        return
    handler = logging.StreamHandler()
    handler.name = _DEBUG
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
