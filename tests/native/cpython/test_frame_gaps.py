"""Callers are told by the room that their frames take, if one row of them alone fits."""

from __future__ import annotations

import pytest

from stepscope.native.cpython.frame_gaps import Beds, SeenFrame
from stepscope.native.formats.python_code import PythonCode

SIZES = {"outer": 100, "caller": 128, "twin": 128, "inner": 96, "__init__": 104, "A.__init__": 104}
USES = {
    "outer": {"caller", "twin", "A"},
    "caller": {"inner"},
    "twin": set[str](),
    "inner": set[str](),
    "A.__init__": set[str](),
}
CALL, START = 77, 1 << 20


def code(name: str) -> PythonCode:
    address = 1000 * (1 + list(SIZES).index(name))
    return PythonCode("/x.py", name, 1, address + 10, 50, b"", inside=True, address=address, frame_size=SIZES[name])


def seen(name: str, offset: int, *, before: int = CALL, leaf: bool = False) -> SeenFrame:
    return SeenFrame(before, offset, code(name), START + offset, leaf)


def names(beds: Beds, one: SeenFrame) -> tuple[str, ...] | None:
    found = beds.callers(one)
    return None if found is None else tuple(caller.function for caller in found)


def beds(*rows: SeenFrame) -> Beds:
    return Beds(rows, lambda one: frozenset(USES[one.function]), lambda _frame, _code: None)


OUTER, CALLER, INNER = seen("outer", 0), seen("caller", 100), seen("inner", 228)


def test_a_row_of_callers() -> None:
    """Each was seen at work at its place."""
    found = beds(OUTER, CALLER, INNER)
    assert names(found, INNER) == ("outer", "caller")
    assert names(found, CALLER) == ("outer",)
    assert names(found, OUTER) == ()


@pytest.mark.parametrize("missing", [OUTER, CALLER], ids=["outermost", "between"])
def test_a_gap_says_nothing(missing: SeenFrame) -> None:
    """Nobody saw what lies there."""
    assert names(beds(*{OUTER, CALLER, INNER} - {missing}), INNER) is None


def test_other_places_say_nothing() -> None:
    """Another call from native code, or another distance."""
    found = beds(OUTER, CALLER, INNER, seen("inner", 230))
    assert names(found, seen("inner", 228, before=CALL + 1)) is None
    assert names(found, seen("inner", 230)) is None


def test_one_of_the_same_size_is_told_by_names() -> None:
    """Only who names a function calls it; where both do, neither is taken."""
    rows = (OUTER, CALLER, seen("twin", 100), INNER)
    assert names(beds(*rows), INNER) == ("outer", "caller")
    both = Beds(rows, lambda _: frozenset({"inner", "caller", "twin"}), lambda _frame, _code: None)
    assert names(both, INNER) is None


def test_a_frame_of_the_interpreters_own_below_init() -> None:
    """It is as large as it is, and nobody's."""
    made = seen("A.__init__", 188)
    assert names(beds(OUTER, made), made) == ("outer",)
    assert names(beds(OUTER, seen("inner", 188)), seen("inner", 188)) is None


def test_in_the_loop_itself_the_usual_place_is_believed() -> None:
    """While the loop goes from one function to the next, its registers may be of both."""
    usual = [seen("inner", 228, leaf=True)] * 3
    found = beds(OUTER, CALLER, *usual, seen("inner", 100, leaf=True), seen("caller", 100, leaf=True))
    assert names(found, usual[0]) == ("outer", "caller")
    assert names(found, seen("inner", 100, leaf=True)) is None


@pytest.mark.parametrize(
    ("name", "own", "expected"),
    [("inner", 0, ("outer",)), ("A.__init__", 88, ("outer",)), ("inner", 8, None)],
    ids=["close", "the-interpreters-between", "gap"],
)
def test_what_memory_still_has(name: str, own: int, expected: tuple[str, ...] | None) -> None:
    """Callers without a gap between them, that name nobody: a row of frames that lead to each other."""
    frames: dict[int, tuple[int, PythonCode | None]] = {START + 100 + own: (START, code("outer"))}
    if expected and own:
        frames = {START + 100 + own: (START + 100, None), START + 100: (START, code("outer"))}
    one = seen(name, 100 + own)
    found = Beds([one], lambda _: frozenset(), lambda frame, _code: frames.get(frame))
    assert names(found, one) == expected


def test_a_row_that_memory_has_helps_the_others() -> None:
    """Seen once, it explains every sample at its places."""
    frames = {START + 228: (START + 100, code("twin")), START + 100: (START, code("outer"))}
    found = Beds([INNER], lambda _: frozenset(), lambda frame, _code: frames.get(frame))
    assert names(found, INNER) == ("outer", "twin")
