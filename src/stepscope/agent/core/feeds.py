"""Whether runs of a session are fed the same values again and again, by what is fed.

The first runs are looked at, then every eighth: the object must be the one of the look before, and a few numbers of an
array the same as they were, because programs fill one array again. Objects are held weakly.
"""

from __future__ import annotations

import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.agent.core.foreign import Foreign

FIRST = 8
"""Runs of a name that are all looked at."""
EVERY = 8
MAX_FEEDS = 32
"""Tensors looked at of one run; runs that are fed more are not looked at."""
NUMBERS = 16
"""Numbers compared of an array."""


class _Looks:
    """What the runs of one name were fed."""

    __slots__ = ("changed", "last", "looks", "runs", "said")

    def __init__(self) -> None:
        self.runs = self.looks = 0
        self.said = FIRST
        """Number of looks after which the result is logged next."""
        self.changed: set[str] = set()
        self.last: dict[str, tuple[object, object]] = {}
        """Name -> (weak reference to what was fed, a few of its numbers)."""


class Feeds:
    """Looks at the feeds of all sessions of one process. Any thread may call ``note``."""

    def __init__(self, now: Callable[[], int], log: Callable[[dict[str, object]], object]) -> None:
        """Write the results with ``log``, at times of ``now``."""
        self._now = now
        self._log = log
        self._looks: dict[int, _Looks] = {}

    def note(self, name: int, feeds: dict[Foreign, Foreign]) -> None:
        """A run of this name was fed this."""
        looks = self._looks.get(name)
        if looks is None:
            looks = self._looks[name] = _Looks()
        looks.runs += 1
        if (looks.runs > FIRST and looks.runs % EVERY) or len(feeds) > MAX_FEEDS:
            return
        before = len(looks.changed)
        for text, value in _parts(feeds):
            self._look(looks, text, value)
        looks.looks += 1
        if looks.looks >= looks.said or (looks.looks > FIRST and len(looks.changed) > before):
            looks.said = max(looks.said, 4 * looks.looks)
            same = sorted(set(looks.last) - looks.changed)
            line: dict[str, object] = {"t": "feeds", "at": self._now(), "name": name}
            line.update(looks=looks.looks, same=same, changed=sorted(looks.changed))
            self._log(line)

    @staticmethod
    def _look(looks: _Looks, text: str, value: Foreign) -> None:
        if text in looks.changed:
            return
        numbers = _numbers(value)
        known = looks.last.get(text)
        if known is None:
            if looks.looks:
                looks.changed.add(text)  # it was not fed before
            else:
                looks.last[text] = (_held(value), numbers)
        elif _object(known[0]) is not value or numbers != known[1]:
            looks.changed.add(text)


def _parts(feeds: dict[Foreign, Foreign]) -> list[tuple[str, Foreign]]:
    """(name, value) of every tensor that is fed; a sparse tensor is several."""
    found = []
    for key, value in feeds.items():
        name = getattr(key, "name", None)
        if isinstance(name, str) and not isinstance(value, tuple):
            found.append((name, value))
        elif isinstance(value, tuple):
            for part in getattr(value, "_fields", ()):
                inner = getattr(getattr(key, part, None), "name", None)
                if isinstance(inner, str):
                    found.append((inner, getattr(value, part)))
    return found


def _held(value: Foreign) -> object:
    """A weak reference; numbers and texts, which have none, as they are."""
    try:
        return weakref.ref(value)
    except TypeError:
        return value if isinstance(value, (bool, int, float, str, bytes, tuple)) else object()


def _object(held: object) -> object:
    return held() if isinstance(held, weakref.ref) else held


def _numbers(value: Foreign) -> object:
    """A few numbers of an array, evenly spread; None of anything else."""
    size = getattr(value, "size", None)
    flat = getattr(value, "flat", None)
    if not isinstance(size, int) or flat is None or not size:
        return None
    step = max(1, size // NUMBERS)
    return tuple(map(repr, flat[::step][:NUMBERS]))
