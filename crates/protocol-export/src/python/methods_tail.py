METHODS: Final[Mapping[Direction, Mapping[str, NotificationMethod[Any]]]] = {
    "clientRequest": cast("Mapping[str, NotificationMethod[Any]]", CLIENT_REQUESTS),
    "serverRequest": cast("Mapping[str, NotificationMethod[Any]]", SERVER_REQUESTS),
    "serverNotification": cast("Mapping[str, NotificationMethod[Any]]", SERVER_NOTIFICATIONS),
    "clientNotification": cast("Mapping[str, NotificationMethod[Any]]", CLIENT_NOTIFICATIONS),
}
"""The four tables by direction, for names that are known only at run time."""


def parse_message(direction: Direction, message: Mapping[str, Any]) -> Any:
    """The params of a request or notification as their model; as they came when the method is unknown."""
    params = message.get("params")
    row = METHODS[direction].get(message["method"])
    return params if row is None else row.read_params(params)


def parse_response(direction: Direction, method: str, result: Any) -> Any:
    """The result of a request as its model; as it came when the method is unknown."""
    row = METHODS[direction].get(method)
    return row.read_response(result) if isinstance(row, RequestMethod) else result
