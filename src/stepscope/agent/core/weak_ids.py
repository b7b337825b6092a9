"""Values attached to other people's objects that cannot carry our attributes."""

from __future__ import annotations

import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Optional

    from stepscope.agent.core.foreign import Foreign


class WeakIds:
    """Values for objects that cannot carry our attributes; an entry goes when its object does.

    A lookup is one dict access by ``id``: an order of magnitude cheaper than ``WeakKeyDictionary``, and it never calls
    the object's ``__hash__`` or ``__eq__``.
    """

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[int, tuple[Foreign, Foreign]] = {}

    def get(self, thing: Foreign) -> Foreign:
        """The value set for ``thing``, or None."""
        entry = self.entries.get(id(thing))
        return entry[1] if entry is not None else None

    def set(self, thing: Foreign, value: Foreign) -> None:
        """Remember ``value`` for as long as ``thing`` lives. Raises TypeError if it cannot be weakly referenced.

        What ``value`` leads to must not lead back to ``thing``, which would live for ever: of the job's objects it
        holds at most weak references.
        """
        entries = self.entries
        key = id(thing)

        def forget(_: Foreign, entries: dict[int, tuple[Foreign, Foreign]] = entries, key: int = key) -> None:
            entries.pop(key, None)

        entries[key] = (weakref.ref(thing, forget), value)

    def entry_of_distributed(self, iterator: Foreign) -> Optional[tuple[Foreign, Foreign]]:
        """The entry of a ``DistributedIterator``, which shares the value of its first device's iterator."""
        parts = getattr(iterator, "_iterators", None)
        devices = getattr(getattr(parts[0], "_iterator", None), "_device_iterators", None) if parts else None
        found = self.entries.get(id(devices[0])) if devices else None
        if found is not None:
            self.set(iterator, found[1])
        return found

    def alive(self) -> Iterator[tuple[Foreign, Foreign]]:
        """(object, value) of all living objects; each is held for its turn only."""
        for reference, value in list(self.entries.values()):
            thing = reference()
            if thing is not None:
                yield thing, value
