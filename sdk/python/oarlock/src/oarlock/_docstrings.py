"""Reads what a docstring says about a function and its parameters: Google, NumPy and Sphinx styles."""

from __future__ import annotations

import inspect
import re

from ._records import record

_GOOGLE = re.compile(r"^(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments):\s*$")
_SECTION = re.compile(
    r"^(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Returns?|Yields?|Raises?|Examples?|Notes?"
    r"|See Also|Attributes|Todo|Warnings?|References)\s*:?\s*$"
)
_UNDERLINE = re.compile(r"^-{3,}\s*$")
_GOOGLE_PARAM = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY_PARAM = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_SPHINX_PARAM = re.compile(r"^:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)$")
_SPHINX_ANY = re.compile(r"^:(?:param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?|yields?)\b")


@record()
class Described:
    """A docstring in parts."""

    text: str
    """Without its sections."""
    parameters: dict[str, str]


def read_docstring(doc: str | None) -> Described:
    if not doc:
        return Described("", {})
    lines = inspect.cleandoc(doc).splitlines()
    text: list[str] = []
    parameters: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        is_numpy = at + 1 < len(lines) and bool(_SECTION.match(line)) and bool(_UNDERLINE.match(lines[at + 1]))
        if is_numpy:
            at = _numpy(lines, at + 2, parameters if line.strip().startswith(("Param", "Arg")) else {})
        elif _GOOGLE.match(line) or (_SECTION.match(line) and line.rstrip().endswith(":")):
            at = _google(lines, at + 1, parameters if _GOOGLE.match(line) else {})
        elif _SPHINX_ANY.match(line):
            at = _sphinx(lines, at, parameters)
        else:
            text.append(line)
            at += 1
    return Described("\n".join(text).strip(), parameters)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(lines: list[str], at: int, parameters: dict[str, str]) -> int:
    """Indented entries `name (type): text`; what is indented deeper goes on with the text."""
    level: int | None = None
    name: str | None = None
    while at < len(lines):
        line = lines[at]
        if line.strip():
            indent = _indent(line)
            if indent == 0:
                break
            level = indent if level is None else level
            found = _GOOGLE_PARAM.match(line.strip()) if indent <= level else None
            if found:
                name = str(found[1])
                parameters[name] = found[2].strip()
            elif name is not None:
                parameters[name] = f"{parameters[name]} {line.strip()}".strip()
        at += 1
    return at


def _numpy(lines: list[str], at: int, parameters: dict[str, str]) -> int:
    """`name : type`, then its text indented; ends at the next underlined heading."""
    names: list[str] = []
    while at < len(lines):
        line = lines[at]
        if at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1]) and line.strip():
            break
        if line.strip():
            found = _NUMPY_PARAM.match(line) if _indent(line) == 0 else None
            if found:
                names = [part.strip().lstrip("*") for part in found[1].split(",")]
                parameters.update(dict.fromkeys(names, ""))
            elif _indent(line) == 0:
                break
            else:
                for name in names:
                    parameters[name] = f"{parameters[name]} {line.strip()}".strip()
        at += 1
    return at


def _sphinx(lines: list[str], at: int, parameters: dict[str, str]) -> int:
    """`:param name: text`, gone on with where it is indented."""
    found = _SPHINX_PARAM.match(lines[at])
    name = found[1] if found else None
    if found and name:
        parameters[name] = found[2].strip()
    at += 1
    while at < len(lines) and lines[at].strip() and _indent(lines[at]) > 0:
        if name:
            parameters[name] = f"{parameters[name]} {lines[at].strip()}".strip()
        at += 1
    return at
