"""Replaces attributes of other people's modules and classes, and restores them."""

from __future__ import annotations

import os
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign

    Rests = tuple[int, Foreign]
    """(kind of its records, light replacement while the wrapper rests and calls of that kind are counted, or None)."""

_MISSING = object()
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Patches:
    """Replaced attributes, in order, each with the probe that replaced it."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, Foreign, str, Foreign, Foreign]] = []
        self._resting: dict[int, tuple[int, Foreign]] = {}
        """Resting entries by position: (kind of their records, light replacement or None)."""
        self._aside: Optional[frozenset[int]] = None
        """Kinds whose light replacement is in use during a rest; None outside one."""

    def set(
        self, probe: str, owner: Foreign, attribute: str, replacement: Foreign, rests: Optional[Rests] = None
    ) -> None:
        """Replace an attribute of a module, class or object; ``rests``: see ``put_aside``."""
        original = vars(owner).get(attribute, _MISSING)
        if self._aside is not None and any(owner is e[1] and attribute == e[2] for e in self._entries):
            return
        self._entries.append((probe, owner, attribute, original, replacement))
        if rests is None:
            setattr(owner, attribute, replacement)
            return
        position = len(self._entries) - 1
        self._resting[position] = rests
        if self._aside is None:
            setattr(owner, attribute, replacement)
        else:
            self._exchange(position, replacement, self._while_resting(position))

    def put_aside(self, counted: frozenset[int]) -> None:
        """Replace each resting wrapper by its light replacement if its kind is in ``counted``, else by the original."""
        self._aside = counted
        for position in self._resting:
            self._exchange(position, self._entries[position][4], self._while_resting(position))

    def put_back(self) -> None:
        """Undo ``put_aside``. Does nothing if nothing is aside."""
        if self._aside is None:
            return
        for position in self._resting:
            self._exchange(position, self._while_resting(position), self._entries[position][4])
        self._aside = None

    def _while_resting(self, position: int) -> Foreign:
        kind, light = self._resting[position]
        return light if light is not None and kind in (self._aside or ()) else self._entries[position][3]

    def _exchange(self, position: int, before: Foreign, after: Foreign) -> None:
        """Set ``after``, unless somebody else has put something over ``before``."""
        _, owner, attribute, _, _ = self._entries[position]
        if vars(owner).get(attribute, _MISSING) is not before:
            return
        if after is _MISSING:
            delattr(owner, attribute)
        else:
            setattr(owner, attribute, after)

    def undo(self, probe: Optional[str] = None) -> None:
        """Restore what one probe replaced, or all. Attributes that others have replaced since are left alone."""
        self.put_back()
        copies: dict[int, tuple[Foreign, Foreign]] = {}
        for entry_probe, owner, attribute, original, replacement in reversed(self._entries):
            if probe is not None and entry_probe != probe:
                continue
            if isinstance(owner, ModuleType) and original is not _MISSING and _is_ours(replacement):
                copies[id(replacement)] = (replacement, original)
            if vars(owner).get(attribute, _MISSING) is not replacement:
                continue
            if original is _MISSING:
                delattr(owner, attribute)
            else:
                setattr(owner, attribute, original)
        kept = [p for p, entry in enumerate(self._entries) if probe is not None and entry[0] != probe]
        self._resting = {new: self._resting[old] for new, old in enumerate(kept) if old in self._resting}
        self._entries = [self._entries[position] for position in kept]
        _undo_copies(copies)


def _is_ours(replacement: Foreign) -> bool:
    """Whether our code created the object, so that anybody else can only have got it by copying."""
    code = getattr(replacement, "__code__", None)
    if code is not None:
        return bool(code.co_filename.startswith(_OURS))
    return type(replacement).__module__.startswith("stepscope.")


def _undo_copies(copies: dict[int, tuple[Foreign, Foreign]]) -> None:
    """Restore originals in modules that copied a replaced function by ``from x import y``.

    Attribute access would load a lazy module, so module dictionaries are read directly.
    """
    if not copies:
        return
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType):
            continue
        names = object.__getattribute__(module, "__dict__")
        for name, value in list(names.items()):
            found = copies.get(id(value))
            while found is not None and found[0] is value:
                names[name] = value = found[1]  # noqa: PLW2901 - a replacement may lie over another one
                found = copies.get(id(value))
