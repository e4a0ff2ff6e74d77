"""Random values of a JSON Schema, for round trips."""

from random import Random
from typing import Any

_SCALARS: dict[str, list[Any]] = {
    "null": [None],
    "boolean": [True, False],
    "integer": [0, 1, 200],
    "number": [0, 1.0, 0.25],
    "string": ["", "a", "/a/b", "ünï"],
}


class Samples:
    """Values of the given types. Deep ones leave out what is optional, so that they end."""

    def __init__(self, types: dict[str, Any], random: Random) -> None:
        self.types = types
        self.random = random

    def of(self, schema: Any, depth: int = 0) -> Any:
        if schema is None or isinstance(schema, bool) or not schema.keys() - {"description", "default"}:
            return self.random.choice([None, 1, 1.5, "x", [1.0], {"any": {"thing": None}}])
        if "$ref" in schema:
            return self.of(self.types[schema["$ref"].rsplit("/", 1)[1]], depth)
        if "allOf" in schema:
            return self.of(schema["allOf"][0], depth)
        if "const" in schema or "enum" in schema:
            return self.random.choice(schema.get("enum") or [schema["const"]])
        for word in ("oneOf", "anyOf"):
            if word in schema:
                value = self.of(self.random.choice(schema[word]), depth)
                return {**value, **self.object(schema, depth)} if "properties" in schema else value
        kind = schema.get("type")
        kind = self.random.choice(kind) if isinstance(kind, list) else kind
        if kind == "array":
            return [self.of(schema.get("items"), depth + 1) for _ in range(self.random.randrange(3))]
        return self.object(schema, depth) if kind == "object" else self.random.choice(_SCALARS[kind])

    def object(self, schema: Any, depth: int) -> dict[str, Any]:
        required = schema.get("required", [])
        value = {
            name: self.of(field, depth + 1)
            for name, field in schema.get("properties", {}).items()
            if name in required or (depth < 6 and self.random.random() < 0.6)
        }
        more = schema.get("additionalProperties", True)
        if more is not False and self.random.random() < 0.3:
            value["zz other"] = self.of(more, depth + 1)
        return value
