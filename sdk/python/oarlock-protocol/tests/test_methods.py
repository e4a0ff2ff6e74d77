"""The method tables: complete, typed, and able to read every payload the schemas allow."""

import json
import random
from pathlib import Path
from typing import Any, get_args

import pytest

import binary
from echo_messages import echo
from oarlock_protocol import (
    CLIENT_REQUESTS,
    METHODS,
    ClientNotificationMethod,
    ClientRequestMethod,
    Direction,
    ItemStartedNotification,
    RequestMethod,
    ServerNotificationMethod,
    ServerRequestMethod,
    ThreadStartParams,
    ThreadStartResponse,
    methods,
    parse_message,
    parse_response,
    types,
)
from samples import Samples

NAMES: dict[Direction, Any] = {
    "clientRequest": ClientRequestMethod,
    "serverRequest": ServerRequestMethod,
    "serverNotification": ServerNotificationMethod,
    "clientNotification": ClientNotificationMethod,
}


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("schemas")
    return binary.schemas(folder)


@pytest.mark.parametrize("direction", NAMES)
def test_a_table_has_a_row_for_every_name(direction: Direction) -> None:
    table = METHODS[direction]
    assert list(table) == list(get_args(NAMES[direction]))
    for method, row in table.items():
        assert row.method == method
        assert row.doc
        assert isinstance(row, RequestMethod) == direction.endswith("Request")


@pytest.mark.parametrize("direction", NAMES)
def test_a_table_has_every_method_of_the_binary(direction: Direction, schemas: dict[str, Any]) -> None:
    union = schemas[direction[0].upper() + direction[1:]]["oneOf"]
    assert list(METHODS[direction]) == [arm["properties"]["method"]["enum"][0] for arm in union]


def test_a_row_gives_its_types() -> None:
    row = CLIENT_REQUESTS["thread/start"]
    params: type[ThreadStartParams] | None = row.params
    response: type[ThreadStartResponse] = row.response
    assert (params, response) == (ThreadStartParams, ThreadStartResponse)
    assert not row.experimental
    read: ThreadStartParams = row.read_params({"cwd": "/work"})
    assert read.cwd == "/work"


def test_a_union_is_a_payload_like_any_other() -> None:
    params = CLIENT_REQUESTS["account/login/start"].read_params({"type": "apiKey", "apiKey": "k"})
    assert params.to_wire() == {"type": "apiKey", "apiKey": "k"}


def test_messages_are_read_by_direction_and_method() -> None:
    item = {"type": "plan", "id": "i", "text": "x"}
    params = {"item": item, "threadId": "t", "turnId": "u"}
    message = {"method": "item/started", "params": params}
    assert isinstance(parse_message("serverNotification", message), ItemStartedNotification)
    assert parse_message("serverNotification", {"method": "no/such", "params": params}) is params
    assert parse_message("clientNotification", {"method": "initialized"}) is None
    assert parse_response("clientRequest", "turn/interrupt", {}).to_wire() == {}
    assert parse_response("clientRequest", "no/such", params) is params


def test_the_module_and_the_package_agree() -> None:
    assert methods.CLIENT_REQUESTS is CLIENT_REQUESTS


def name_of(form: Any) -> str:
    return next(name for name in types.__all__ if getattr(types, name) is form)


def test_every_payload_the_schemas_allow_comes_back_unchanged(schemas: dict[str, Any]) -> None:
    samples = Samples(schemas, random.Random(1))
    for direction, table in METHODS.items():
        for row in table.values():
            payloads: dict[str, Any] = {direction: row.params}
            if isinstance(row, RequestMethod):
                payloads[direction.replace("Request", "Response")] = row.response
            for speaker, form in payloads.items():
                schema = schemas[name_of(form)] if form else {"type": "null"}
                for _ in range(20):
                    line = {"direction": speaker, "method": row.method, "payload": samples.of(schema)}
                    assert json.dumps(echo(line), sort_keys=True) == json.dumps(line, sort_keys=True)


def test_what_cannot_be_read_comes_back_as_an_error() -> None:
    line = {"direction": "clientResponse", "method": "thread/start"}
    assert echo({**line, "payload": {}}).keys() == {"direction", "method", "error"}
    assert "unknown" in echo({**line, "method": "no/such"})["error"]
