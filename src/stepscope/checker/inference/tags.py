"""What a value is, as far as rules need it: a small lattice and what is known beside the tag."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepscope.checker.source.bindings import Scope
    from stepscope.checker.source.modules import Module


class Tag(Enum):
    """The kinds of value that rules tell apart. A rule reports only where the tag is known."""

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
    """Of a Dataset."""
    SESSION = "Session"
    BOOL = "bool"
    """Of Python: takes two values, so that a tf.function traces at most twice for it."""
    PY_SCALAR = "Python number"
    PY_STRING = "Python string"
    NUMPY = "NumPy"


@dataclass(frozen=True, slots=True)
class Class:
    """A class of the project."""

    module: Module
    scope: Scope

    @property
    def name(self) -> str:
        """Qualified: ``package.module.Trainer``."""
        return f"{self.module.name}.{self.scope.name}"


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value. ``UNKNOWN_VALUE`` says nothing."""

    tag: Tag = Tag.UNKNOWN
    many: bool = False
    """A container (tuple, list, dict, range) whose elements have the tag."""
    kind: str = ""
    """Qualified name of its class where that is known: ``tensorflow.train.Saver``, ``project.Trainer``."""
    cls: Class | None = None
    """Its class, where that is the project's."""
    parts: tuple[Value, ...] = ()
    """Of a tuple or list whose elements are known one by one."""

    @property
    def known(self) -> bool:
        """Anything at all is known."""
        return self.tag is not Tag.UNKNOWN or bool(self.kind) or bool(self.parts)

    def element(self, index: int | None = None) -> Value:
        """What iterating or subscripting gives; ``index`` where it is known (-1: a starred rest)."""
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
    """What a value is that may be any of these: what is unknown or None says nothing, contradictions are unknown."""
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
