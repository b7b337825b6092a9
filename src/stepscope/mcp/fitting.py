"""Answers of limited size: as many items as fit, and how many more there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

FIRST_BYTES = 2_000
"""Most bytes of an answer, if the request says no other number."""
MOST_BYTES = 20_000
LEAST_BYTES = 500
Record = dict[str, object]
Lists = dict[str, Sequence[object]]
Build = Callable[[int], tuple[Record, Lists]]
"""Makes head and lists, with texts of at most so many characters."""
ROOMS = (250, 160, 100, 60, 30)
"""Most characters of a text, tried in turn until everything fits; lists are cut at the last."""


def fit(build: Build, most: int, rooms: Sequence[int] = ROOMS) -> bytes:
    """The answer as compact JSON of at most ``most`` bytes; ``more_NAME`` counts what a list leaves out."""
    shown = b""
    for room in rooms:
        head, lists = build(room)
        whole = encode({**head, **{name: items for name, items in lists.items() if items}})
        if len(whole) <= most:
            return whole
        shown = _cut(head, lists, most)
    return shown


def _cut(head: Record, lists: Mapping[str, Sequence[object]], most: int) -> bytes:
    """The head, and of each list in turn as much as there is room for, until one does not fit."""
    before = {name: _count(head.get(f"more_{name}")) for name in lists}
    answer: Record = {**head, **{f"more_{name}": len(items) + before[name] for name, items in lists.items() if items}}
    left = most - len(encode(answer))
    for name, items in lists.items():
        left -= len(f'"{name}":[],')
        kept = []
        for item in items:
            left -= len(encode(item)) + 1
            if left < 0:
                break
            kept.append(item)
        if kept:
            answer[name] = kept
            answer[f"more_{name}"] = len(items) - len(kept) + before[name]
        if len(kept) < len(items):
            break
    return encode(answer)


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def encode(answer: object) -> bytes:
    """Compact JSON."""
    return msgspec.json.encode(answer)
