"""Structures filled from their types: every string holds a text of its own, every enumeration one of its values."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T", bound=msgspec.Struct)


class Filler:
    """Makes values of types. ``text`` says what is written beside the mark of each string, ``variant`` which of several
    values an enumeration has.
    """

    def __init__(self, text: str, variant: int = 0) -> None:
        self.text, self.variant = text, variant
        self.marks: list[str] = []
        """Of the strings made so far, by number."""

    def fill(self, kind: type[T], **fields: object) -> T:
        """One of ``kind``, with ``fields`` as given."""
        made = self._value(inspect.type_info(kind))
        assert isinstance(made, kind)
        return msgspec.structs.replace(made, **fields)

    def string(self) -> str:
        """A new string: a mark that no other has, then the text."""
        self.marks.append(f"S{len(self.marks):04}")
        return self.marks[-1] + self.text

    def _value(self, kind: inspect.Type) -> object:
        if isinstance(kind, inspect.StrType):
            return self.string()
        if isinstance(kind, inspect.LiteralType):
            return kind.values[self.variant % len(kind.values)]
        if isinstance(kind, inspect.BoolType):
            return bool(self.variant % 2)
        if isinstance(kind, inspect.IntType):
            return 2 + self.variant
        if isinstance(kind, inspect.FloatType):
            return 0.25
        if isinstance(kind, inspect.UnionType):
            return self._value(next(one for one in kind.types if not isinstance(one, inspect.NoneType)))
        if isinstance(kind, inspect.VarTupleType):
            return tuple(self._value(kind.item_type) for _ in range(2))
        if isinstance(kind, inspect.TupleType):
            return tuple(map(self._value, kind.item_types))
        if isinstance(kind, inspect.DictType):
            return {self._value(kind.key_type): self._value(kind.value_type)}
        assert isinstance(kind, inspect.StructType), kind
        return kind.cls(**{field.name: self._value(field.type) for field in kind.fields})
