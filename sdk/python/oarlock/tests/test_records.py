"""What is cheap to define and to read: records, and messages out of bytes. No binary."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import os
import pickle
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock import ConfigError, Docker, Key, Podman
from oarlock._buffer import EventBuffer
from oarlock._connection import Connection
from oarlock._scratch import remove_folder, scratch_folder, scratch_log
from oarlock._transports import LineMessages
from oarlock.capabilities import Shell
from oarlock.events import TextDelta


@pytest.fixture(autouse=True)
def home() -> None:
    """Nothing here needs a program."""


def test_a_record_is_a_frozen_dataclass() -> None:
    box = Docker("debian:12", memory="2g")
    assert box == Docker("debian:12", memory="2g") != Podman("debian:12", memory="2g")
    assert hash(box) == hash(dataclasses.replace(box))
    assert [field.name for field in dataclasses.fields(box)][:2] == ["image", "user"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        box.image = "other"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        box.__delattr__("image")
    match box:
        case Docker(image):
            assert image == "debian:12"


def test_a_program_derives_from_a_record() -> None:
    class Desk(Shell):
        def __init__(self, limit: int) -> None:
            super().__init__(policy=lambda call: None)
            self.limit = limit

    desk = Desk(3)
    assert desk.limit == 3 and desk.policy is not None
    with pytest.raises(dataclasses.FrozenInstanceError):
        desk.policy = None  # type: ignore[misc]


def test_a_record_is_copied_and_pickled() -> None:
    event = TextDelta(seq=3, item_id="m", text="hello")
    for other in (copy.copy(event), copy.deepcopy(event), pickle.loads(pickle.dumps(event))):
        assert other == event and other is not event


def test_a_record_says_which_arguments_it_takes() -> None:
    # Also before the first one is made, as in an editor or a notebook.
    shown = str(inspect.signature(TextDelta))
    assert shown.startswith("(*, seq: ") and "item_id: " in shown and "self" not in shown
    with pytest.raises(TypeError, match=r"__init__\(\) got an unexpected keyword argument 'nope'"):
        TextDelta(seq=0, item_id="m", text="", nope=1)  # type: ignore[call-arg]
    # What a class checks for itself is checked.
    with pytest.raises(ConfigError, match="exactly one"):
        Key()


MESSAGES = st.lists(st.dictionaries(st.text(max_size=8), st.text(max_size=20) | st.integers() | st.none(), max_size=3))


@given(messages=MESSAGES, cuts=st.lists(st.integers(min_value=0, max_value=400), max_size=6), spaced=st.booleans())
def test_messages_are_the_same_however_they_arrive(messages: list[Any], cuts: list[int], spaced: bool) -> None:
    lines = [json.dumps(message, ensure_ascii=False).encode() for message in messages]
    data = (b"\n\n" if spaced else b"\n").join(lines) + b"\n"
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    reader = LineMessages()
    found = [message for start, end in pairwise(places) if start < end for message in reader.feed(data[start:end])]
    assert found == messages


@pytest.mark.parametrize("line", [b"nonsense", b"{}]", b"{},", b'{"a":', b"{}] , [{}", b"\xff"])
def test_a_line_that_is_no_message_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError):
        LineMessages().feed(b'{"a":1}\n' + line + b"\n")


def test_a_long_line_is_joined_once() -> None:
    text = "x" * 10_000_000
    data = json.dumps({"text": text}).encode() + b"\n"
    reader = LineMessages()
    found = [message for start in range(0, len(data), 1_000) for message in reader.feed(data[start : start + 1_000])]
    assert found == [{"text": text}]


def test_a_reader_takes_what_is_there_without_waiting() -> None:
    buffer = EventBuffer()
    assert buffer.take() is None
    event = TextDelta(seq=1, item_id="m", text="a")
    buffer.feed(event)
    assert buffer.take() == event and buffer.take() is None


@pytest.mark.parametrize("place", [None, "/nowhere/at/all"])
def test_what_nobody_keeps(place: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if place is not None:
        # As `tempfile` does: another place is found.
        monkeypatch.setenv("TMPDIR", place)
    folder = Path(scratch_folder("oarlock-test-"))
    try:
        assert folder.stat().st_mode & 0o777 == 0o700 and folder.name.startswith("oarlock-test-")
    finally:
        remove_folder(str(folder))
    assert not folder.exists()
    with scratch_log() as log:
        # Whoever writes, and wherever somebody else reads meanwhile: at the end.
        os.write(log.fileno(), b"one ")
        log.seek(0)
        os.write(log.fileno(), b"two")
        log.seek(0)
        assert log.read() == b"one two"
        assert not os.get_inheritable(log.fileno())


def delta(method: str, thread: Any, item: Any, text: Any) -> dict[str, Any]:
    return {"method": method, "params": {"threadId": thread, "itemId": item, "delta": text}}


SAID, THOUGHT = "item/agentMessage/delta", "item/reasoning/textDelta"
NOTIFICATIONS = st.lists(
    st.builds(delta, st.sampled_from([SAID, THOUGHT]), st.sampled_from(["t", "u"]), st.sampled_from("ab"), st.text())
    | st.builds(delta, st.just(SAID), st.sampled_from(["t", None]), st.sampled_from(["a", 1]), st.none() | st.text())
    | st.sampled_from([{"method": SAID}, {"method": SAID, "params": []}, {"method": "turn/started", "params": {}}])
)


@given(messages=NOTIFICATIONS)
def test_deltas_that_are_taken_together_stay_in_their_order(messages: list[Any]) -> None:
    found: list[tuple[str, Any]] = []

    def together(method: str, params: Sequence[Mapping[str, Any]]) -> None:
        assert len({(each["threadId"], each["itemId"]) for each in params}) == 1
        found.extend((method, each) for each in params)

    transport: Any = None
    connection = Connection(
        transport, on_notification=lambda *one: found.append(one), on_deltas=together, on_request=lambda *one: None
    )
    connection._take_all(messages)
    assert found == [(message["method"], message.get("params")) for message in messages]


@given(texts=st.lists(st.text(min_size=1, max_size=3), max_size=700), reads=st.integers(min_value=0, max_value=300))
def test_a_reader_gets_all_of_the_text_in_few_events(texts: list[str], reads: int) -> None:
    buffer = EventBuffer()
    middle = len(texts) // 2
    buffer.feed_deltas(TextDelta, 1, "m", texts[:middle])
    read = [text for _ in range(reads) if (text := buffer.take_text()) is not None]
    buffer.feed_deltas(TextDelta, 1, "m", texts[middle:])
    assert len(buffer) <= 257
    events = buffer.drain()
    assert len(buffer) == 0 and buffer.take() is None
    assert "".join([*read, *(event.text for event in events if isinstance(event, TextDelta))]) == "".join(texts)
