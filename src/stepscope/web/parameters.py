"""Parameters of an address: declared once, validated strictly, and documented as declared.

Undeclared parameters are refused, and so are numbers not written in the canonical way: the server accepts exactly what
the OpenAPI document allows.
"""

from __future__ import annotations

import re
from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING

from msgspec import Struct, field

from stepscope.web.problems import RefusedRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
Value = int | str


class Parameter(Struct, frozen=True, kw_only=True):
    """One parameter. ``where``: query or path."""

    name: str
    about: str
    where: str = "query"
    default: Value | None = None
    """Default; None: the parameter is required."""

    def read(self, text: str) -> Value:
        """The parsed value.

        Raises:
            Refused: the text is not a valid value.
        """
        raise NotImplementedError

    def schema(self) -> dict[str, object]:
        """Its JSON schema."""
        raise NotImplementedError

    def _refuse(self, text: str, expected: str) -> RefusedRequest:
        status = HTTPStatus.NOT_FOUND if self.where == "path" else HTTPStatus.BAD_REQUEST
        return RefusedRequest(status, f"{self.name} is {text[:80]!r}; expected {expected}")


class Number(Parameter, frozen=True, kw_only=True):
    """A whole number."""

    least: int = 0
    most: int

    def read(self, text: str) -> int:
        """The parsed value.

        Raises:
            Refused: the text is not a number, or out of bounds.
        """
        if not _NUMBER.fullmatch(text) or not self.least <= int(text) <= self.most:
            raise self._refuse(text, f"a number from {self.least} to {self.most}")
        return int(text)

    def schema(self) -> dict[str, object]:
        """Its JSON schema."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


class Choice(Parameter, frozen=True, kw_only=True):
    """One of some words."""

    words: tuple[str, ...]

    def read(self, text: str) -> str:
        """The parsed value.

        Raises:
            Refused: it is none of the words.
        """
        if text not in self.words:
            raise self._refuse(text, " or ".join(word or "nothing" for word in self.words))
        return text

    def schema(self) -> dict[str, object]:
        """Its JSON schema."""
        return {"type": "string", "enum": list(self.words)}


class Text(Parameter, frozen=True, kw_only=True):
    """A short text that matches ``pattern``, if set."""

    most: int = 200
    pattern: str = ""

    def read(self, text: str) -> str:
        """The parsed value.

        Raises:
            Refused: it is too long, or does not match the pattern.
        """
        if len(text) > self.most or (self.pattern and not re.fullmatch(self.pattern, text, re.ASCII)):
            raise self._refuse(text, self.pattern or f"at most {self.most} characters")
        return text

    def schema(self) -> dict[str, object]:
        """Its JSON schema."""
        form = {"pattern": f"^{self.pattern}$"} if self.pattern else {"maxLength": self.most}
        return {"type": "string", **form}


class Arguments(Struct, frozen=True):
    """The values of one request."""

    values: Mapping[str, Value] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """The value of a declared number."""
        return int(self.values[name])

    def text(self, name: str) -> str:
        """The value of a declared text."""
        return str(self.values[name])


def read(declared: Sequence[Parameter], path: Mapping[str, object], query: Sequence[tuple[str, str]]) -> Arguments:
    """The values of all parameters.

    Raises:
        Refused: one is missing, given twice, invalid or unknown.
    """
    given = Counter(name for name, _ in query)
    known = {p.name for p in declared if p.where == "query"}
    for name, count in given.items():
        if name not in known:
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, f"unknown parameter {name[:80]!r}; expected {_names(known)}")
        if count > 1:
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, f"parameter {name} is given {count} times; expected once")
    texts = dict(query)
    values: dict[str, Value] = {}
    for parameter in declared:
        text = str(path[parameter.name]) if parameter.where == "path" else texts.get(parameter.name)
        if text is not None:
            values[parameter.name] = parameter.read(text)
        elif parameter.default is not None:
            values[parameter.name] = parameter.default
        else:
            raise RefusedRequest(HTTPStatus.BAD_REQUEST, f"parameter {parameter.name} is missing: {parameter.about}")
    return Arguments(values)


def _names(known: set[str]) -> str:
    return ", ".join(sorted(known)) or "none"
