"""What was replaced in other people's modules and classes, and how it is put back."""

from __future__ import annotations

import os
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

_MISSING = object()
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Patches:
    """The replaced attributes, in order, each with the probe that replaced it."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, Any, str, Any, Any]] = []

    def set(self, probe: str, owner: Any, attribute: str, replacement: Any) -> None:
        """Replace an attribute of a module, class or object."""
        original = vars(owner).get(attribute, _MISSING)
        setattr(owner, attribute, replacement)
        self._entries.append((probe, owner, attribute, original, replacement))

    def undo(self, probe: Optional[str] = None) -> None:
        """Put back what one probe replaced, or all. What others have put over it since is left alone."""
        copies: dict[int, tuple[Any, Any]] = {}
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
        self._entries = [entry for entry in self._entries if probe is not None and entry[0] != probe]
        _undo_copies(copies)


def _is_ours(replacement: Any) -> bool:
    """Whether the object was made by us alone: nobody else can have got hold of it but by copying it."""
    code = getattr(replacement, "__code__", None)
    if code is not None:
        return bool(code.co_filename.startswith(_OURS))
    return type(replacement).__module__.startswith("stepscope.")


def _undo_copies(copies: dict[int, tuple[Any, Any]]) -> None:
    """Put originals back where modules have copied a replaced function by ``from x import y``.

    A lazy module would be loaded by looking at it through its own methods: its dictionary is read past them.
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
