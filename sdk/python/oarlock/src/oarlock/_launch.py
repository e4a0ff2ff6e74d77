"""Starts the host of a program before the rest of the package is loaded: both then take their time at once."""

from __future__ import annotations

from ._embedded import EmbeddedHost
from ._options import SessionOptions
from ._process import HostProcess
from ._records import record
from ._wire import greeting


@record()
class LaunchedHost:
    """The host of a store."""

    embedded: EmbeddedHost
    process: HostProcess | None
    """Nothing where it is found or started later."""


def launch(options: SessionOptions) -> LaunchedHost | None:
    """Nothing for a host that runs elsewhere.

    Where another process may have a host of the store, that is looked for first; and a provider of this program needs
    its endpoint before.
    """
    if options.url is not None:
        return None
    embedded = EmbeddedHost(options.store)
    if embedded.may_run() or options.own_provider is not None:
        return LaunchedHost(embedded, None)
    try:
        process = embedded.spawn(options.argv(), options.environment())
    except BaseException:
        embedded.remove()
        raise
    process.greet(greeting())
    return LaunchedHost(embedded, process)
