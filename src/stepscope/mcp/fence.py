"""The fence: which text of an answer is stepscope's own, and which is of the job.

The type of a field decides. A string of a closed set (a ``Literal``, or a field of ``KNOWN`` whose value is in its set)
is stepscope's own word. All other strings stand below a key that begins with ``untrusted_``, escaped by ``escaped``.
A new field of a report is therefore fenced until somebody lists it.
"""

from __future__ import annotations

import re
import types
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal, Union, get_args, get_origin

import msgspec

from stepscope._version import __version__

MARK = "untrusted_"
"""What a key begins with whose value holds text of the job."""
CUT = "\u2026"
DIGITS = 4
"""Digits of a number that is no integer."""
CLOSED = frozenset({int, float, bool, type(None)})
_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Of characters that are escaped: control, format (with those that turn the direction of text, and tags), lone
surrogates, private, unassigned, ends of lines and paragraphs."""
Plain = dict[str, object] | list[object] | str | int | float | bool | None


def escaped(text: str, room: int = 0) -> str:
    r"""One line that hides nothing: ``\n``, ``\x1b``, ``\u202e`` instead of such characters.

    Args:
        text: text of the job.
        room: most characters, 0: any number; a text that was cut ends in an ellipsis.
    """
    said = text[: room + 1] if room else text
    if not (said.isascii() and said.isprintable()):
        said = "".join(_escape(char) if unicodedata.category(char) in _CATEGORIES else char for char in said)
    return said if not room or len(said) <= room else said[: room - 1] + CUT


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def fenced(record: msgspec.Struct, room: int = 0) -> dict[str, object]:
    """A record as JSON's own types. Fields that say nothing (null, "", empty) are left out.

    Args:
        record: any struct of stepscope's.
        room: most characters of each text; 0: any number.
    """
    answer: dict[str, object] = {}
    for field in msgspec.structs.fields(type(record)):
        value = getattr(record, field.name)
        if value is None or (isinstance(value, str | tuple | list | dict | frozenset) and not value):
            continue
        if is_closed(field.type) or KNOWN.get((type(record).__name__, field.name), _nothing)(value):
            answer[field.name] = _own(value, room)
        else:
            answer[MARK + field.name] = data(value, room)
    return answer


def data(value: object, room: int = 0) -> Plain:
    """A value with text of the job, for a key that begins with ``MARK``; a mapping becomes pairs."""
    if isinstance(value, str):
        return escaped(value, room)
    if isinstance(value, Mapping):
        return [[data(key, room), data(one, room)] for key, one in value.items()]
    if isinstance(value, tuple | list | set | frozenset):
        return [data(one, room) for one in value]
    return _number(value) if not isinstance(value, msgspec.Struct) else fenced(value, room)


def _own(value: object, room: int) -> Plain:
    """A value without text of the job, but in records, which are fenced."""
    if isinstance(value, msgspec.Struct):
        return fenced(value, room)
    if isinstance(value, Mapping):
        return {str(key): _own(one, room) for key, one in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [_own(one, room) for one in value]
    return value if isinstance(value, str) else _number(value)


def _number(value: object) -> Plain:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    return float(f"{float(str(value)):.{DIGITS}g}")


@cache
def is_closed(kind: object) -> bool:
    """Whether a value of this type holds no string that is not in the type itself; records fence themselves."""
    if kind in CLOSED:
        return True
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return True
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return True
    if origin in {Union, types.UnionType, tuple, list, dict, Mapping}:
        return all(one is Ellipsis or is_closed(one) for one in inner)
    return False


def _nothing(value: object) -> bool:
    del value
    return False


def _is_code(value: object) -> bool:
    return isinstance(value, str) and (value in _names() or re.fullmatch(r"DX\d{3}", value, re.ASCII) is not None)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value in _names().values()


def _is_component(value: object) -> bool:
    return isinstance(value, str) and value in _components()


def _are_parts(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_is_component, value))


def _is_version(value: object) -> bool:
    return value == __version__


KNOWN: Mapping[tuple[str, str], Callable[[object], bool]] = {
    ("BriefFinding", "code"): _is_code,
    ("BriefStep", "parts"): _are_parts,
    ("CompareReport", "version"): _is_version,
    ("Diagnostic", "code"): _is_code,
    ("Finding", "code"): _is_code,
    ("Finding", "name"): _is_name,
    ("FindingChange", "code"): _is_code,
    ("StepPart", "component"): _is_component,
}
"""By struct and field: whether a value is one of stepscope's own words. One that is none is fenced as all others."""


@cache
def _names() -> dict[str, str]:
    """The name of each detector and rule by its code."""
    from stepscope.check.registry import ALL
    from stepscope.detectors.registry import EVERY

    return {one.code: one.name for one in EVERY} | {one.code: one.name for one in ALL}


@cache
def _components() -> frozenset[str]:
    from stepscope.report.words import COMPONENT_WORDS

    return frozenset(COMPONENT_WORDS)
