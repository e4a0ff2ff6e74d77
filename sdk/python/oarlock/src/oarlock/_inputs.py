"""Input for a turn, as the wire takes it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from ._results import Image, Input, Skill
from ._typing import JSON


def data_url(data: bytes) -> str:
    """Bytes of a picture as a URL."""
    kinds = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
    kind = next((kind for head, kind in kinds.items() if data.startswith(head)), "png")
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def image_url(image: Image) -> str:
    """The picture itself: it may be read where the host is not."""
    if isinstance(image.src, bytes):
        return data_url(image.src)
    if isinstance(image.src, str) and image.src.startswith(("http://", "https://", "data:")):
        return image.src
    return data_url(Path(image.src).read_bytes())


def to_user_input(input: Input) -> list[Mapping[str, JSON]]:
    """As `turn/start` and `turn/steer` take it."""
    parts = [input] if isinstance(input, str) else list(input)
    return [_part(part) for part in parts]


def _part(part: str | Image | Skill) -> Mapping[str, JSON]:
    match part:
        case str():
            return {"type": "text", "text": part}
        case Image():
            return {"type": "image", "url": image_url(part)}
        case Skill(name=name):
            # As a person would name it; the runtime knows where it is.
            return {"type": "text", "text": f"${name}"}
