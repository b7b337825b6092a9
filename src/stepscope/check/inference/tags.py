"""Kinds of values, as far as rules need them: a small lattice, and further facts about a value."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.check.source.bindings import Scope
    from stepscope.check.source.modules import Module


class Tag(Enum):
    """The kinds of value that rules distinguish. A rule reports only if the tag is known."""

    UNKNOWN = "unknown"
    NONE = "None"
    DATASET = "Dataset"
    MODEL = "Model"
    LAYER = "Layer"
    OPTIMIZER = "Optimizer"
    TENSOR = "Tensor"
    VARIABLE = "Variable"
    FUNCTION = "Function"
    """A tf.function object, made by decorator or call."""
    ITERATOR = "Iterator"
    """Iterator of a Dataset."""
    SESSION = "Session"
    BOOL = "bool"
    """Python bool: it has two values, so that a tf.function traces at most twice for it."""
    PY_SCALAR = "Python number"
    PY_STRING = "Python string"
    NUMPY = "NumPy"


class Class(Struct, frozen=True):
    """A class of the project."""

    module: Module
    scope: Scope

    @property
    def name(self) -> str:
        """The qualified name: ``package.module.Trainer``."""
        return f"{self.module.name}.{self.scope.name}"


class Value(Struct, frozen=True):
    """Facts about a value. ``UNKNOWN_VALUE`` states nothing."""

    tag: Tag = Tag.UNKNOWN
    many: bool = False
    """Flag: a container (tuple, list, dict, range) whose elements have the tag."""
    kind: str = ""
    """Qualified name of its class, if known: ``tensorflow.train.Saver``, ``project.Trainer``."""
    cls: Class | None = None
    """Project class of the value."""
    parts: tuple[Value, ...] = ()
    """Parts of a tuple or list whose elements are known one by one."""

    @property
    def known(self) -> bool:
        """Whether anything at all is known."""
        return self.tag is not Tag.UNKNOWN or bool(self.kind) or bool(self.parts)

    def element(self, index: int | None = None) -> Value:
        """The value of an element; ``index`` if it is known (-1: a starred rest)."""
        if self.parts:
            if index is not None and 0 <= index < len(self.parts):
                return self.parts[index]
            return join(self.parts)
        if self.many:
            return Value(self.tag, kind=self.kind, cls=self.cls)
        if self.tag in (Tag.TENSOR, Tag.VARIABLE, Tag.DATASET, Tag.ITERATOR):
            return Value(Tag.TENSOR)
        if self.tag is Tag.NUMPY:
            return self
        return Value(Tag.PY_STRING) if self.tag is Tag.PY_STRING else UNKNOWN_VALUE


UNKNOWN_VALUE = Value()


def join(values: Iterable[Value]) -> Value:
    """The value that may be any of these: unknown and None are ignored, contradictions are unknown."""
    found = None
    none = False
    for value in values:
        if value.tag is Tag.NONE:
            none = True
        elif value.known:
            if found is None or found == value:
                found = value
            elif found.tag is value.tag and found.many == value.many and value.tag is not Tag.UNKNOWN:
                found = Value(value.tag, value.many)
            elif {found.tag, value.tag} <= {Tag.TENSOR, Tag.VARIABLE}:
                found = Value(Tag.TENSOR)
            elif {found.tag, value.tag} <= {Tag.BOOL, Tag.PY_SCALAR}:
                found = Value(Tag.PY_SCALAR)
            else:
                return UNKNOWN_VALUE
    if found is None:
        return Value(Tag.NONE) if none else UNKNOWN_VALUE
    return found
