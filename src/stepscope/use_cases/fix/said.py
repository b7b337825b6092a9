"""What a run logs, in a form in which runs can be compared: its lines without times, and the numbers in them.

Left out is what differs between two equal runs and says nothing of what was computed: times, rates, dates, addresses,
progress bars on their way, and what frameworks and Python's warnings write to the error output.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from stepscope.model.report.fix import EditClass, Sameness

CLOSE = 1e-5
"""Difference up to which two numbers are the same for an edit that computes the same mathematics otherwise: absolute up
to 1, relative above."""
MOST_BYTES = 16 << 20
"""Largest output that is compared."""
MOST_SHOWN = 70
"""Letters of a line in a message."""
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)(?![\w])")
_MINUTES = r"mins?(?:(?=\s*\d[\d.]*\s*s)|(?!\s*[:=]?\s*[-+.\d]))"
"""Not a "min" with a value behind it, which is the least of something."""
_UNIT = rf"(?:ns|us|µs|ms|s|secs?|seconds?|{_MINUTES}|minutes?|h|hours?)"
_THING = r"(?:it|steps?|samples?|images?|imgs?|examples?|batch(?:es)?|tokens?|records?|rows?|epochs?|[kKMG]?i?B)"
_VALUE = r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?"
_NAMED = r"\b(?:\w+[_ ])?(?:time|elapsed|took|duration|seconds|secs?|speed|throughput|fps|eta)\b"
_TIMES = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (
        r"0x[0-9a-f]+",
        r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?",
        r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?",
        rf"{_VALUE}\s*{_THING}\s*(?:/|per )\s*{_UNIT}\b",
        rf"{_VALUE}\s*{_UNIT}\s*(?:/|per )\s*\w+",
        rf"{_VALUE}\s*{_UNIT}\b",
        rf"{_NAMED}\W{{0,3}}{_VALUE}",
    )
)
"""What is a time, a rate, a date or an address."""
UNKNOWN = "Unknown"
_BAR = re.compile(rf"^\s*(\d+)/(\d+|{UNKNOWN})\s.*[━=>\[.]")
"""A line of Keras' progress bar."""
_OF_OTHERS = re.compile(
    r"^(?:\d{4}-\d\d-\d\d .*: [IWEF] |[IWEF]\d{4} |WARNING:|INFO:tensorflow|\s{2,}|To enable the following instruc)"
    r"|Warning: "
)
"""Lines of the error output that frameworks and Python's warnings write."""


class Said(Struct, frozen=True, kw_only=True):
    """What a run logged."""

    lines: tuple[str, ...]
    """Without times; each number is a ``#``."""
    numbers: tuple[tuple[str, ...], ...]
    """The numbers of each line, as they were written."""
    problem: str = ""
    """Why it cannot be compared."""

    @property
    def count(self) -> int:
        """Number of numbers."""
        return sum(map(len, self.numbers))


def read(out: Path, log: Path) -> Said:
    """What a run wrote to its output and to its errors."""
    texts = []
    for path in (out, log):
        try:
            with path.open("rb") as stream:
                data = stream.read(MOST_BYTES + 1)
        except OSError as error:
            return Said(lines=(), numbers=(), problem=f"its output cannot be read: {error.strerror}")
        if len(data) > MOST_BYTES:
            return Said(lines=(), numbers=(), problem=f"it writes more than {MOST_BYTES >> 20} MB")
        texts.append(data.decode("utf-8", "replace"))
    return of(*texts)


def of(out: str, log: str = "") -> Said:
    """What was logged in these texts."""
    errors = [line for line in _lines(log) if not _OF_OTHERS.search(line)]
    found = [_apart(line) for line in (*_lines(out), *errors)]
    return Said(lines=tuple(line for line, _ in found), numbers=tuple(numbers for _, numbers in found))


def _lines(text: str) -> list[str]:
    """The lines as a terminal would leave them, without progress bars on their way."""
    kept: list[str] = []
    on_its_way = False
    for line in text.split("\n"):
        left = next((part for part in reversed(line.replace("\b", "").split("\r")) if part.strip()), "")
        bar = _BAR.match(left)
        if not left or (bar is not None and bar[1] != bar[2] != UNKNOWN):
            continue
        if on_its_way and bar is not None:
            kept[-1] = left
        else:
            kept.append(left)
        on_its_way = bar is not None and bar[2] == UNKNOWN
    return kept


def _apart(line: str) -> tuple[str, tuple[str, ...]]:
    for pattern in _TIMES:
        line = pattern.sub("~", line)
    line = re.sub(r"[━─=>#█▏▎▍▌▋▊▉]{2,}", "", line)
    return " ".join(_NUMBER.sub("#", line).split()), tuple(_NUMBER.findall(line))


def difference(one: Said, other: Said, *, close: float = 0.0) -> str:
    """The first difference in words; "" if there is none.

    Args:
        one: what a run logged.
        other: the same of another run.
        close: difference of two numbers that is none; 0: they are the same if they are written alike.
    """
    problem = one.problem or other.problem
    if problem:
        return problem
    for at, (line, its) in enumerate(zip(one.lines, other.lines, strict=False)):
        if line != its:
            return f"'{line[:MOST_SHOWN]}' became '{its[:MOST_SHOWN]}'"
        for number, mine in zip(one.numbers[at], other.numbers[at], strict=True):
            if not _alike(number, mine, close):
                return f"{number} became {mine} in '{line[:MOST_SHOWN]}'"
    if len(one.lines) != len(other.lines):
        return f"{len(one.lines)} lines became {len(other.lines)}"
    return ""


def _alike(one: str, other: str, close: float) -> bool:
    if one == other:
        return True
    if not close:
        return False
    first, second = float(one), float(other)
    return math.isfinite(first) and abs(first - second) <= close * max(1.0, abs(first))


def not_repeatable(unchanged: Sequence[Said]) -> str:
    """Why unchanged runs cannot tell whether another program computes the same; "" if they can."""
    if len(unchanged) < 2:  # noqa: PLR2004
        return "fewer than two unchanged runs"
    for other in unchanged[1:]:
        found = difference(unchanged[0], other)
        if found:
            return f"two unchanged runs differ: {found}"
    return "" if unchanged[0].count else "it logs no number that could be compared"


class Judged(Struct, frozen=True, kw_only=True):
    """Whether a patched program computes the same."""

    same: Sameness
    """As in ``TriedEdit``; "": it does not, or it is not known."""
    why: str = ""
    """Why it is not known, or what differs."""
    repeatable: bool = True


def judge(unchanged: Sequence[Said], patched: Iterable[Said], kind: EditClass, allowed: frozenset[str]) -> Judged:
    """Whether a patched program computes the same as the unchanged one.

    Args:
        unchanged: two runs or more.
        patched: runs of it.
        kind: the weakest class among its edits.
        allowed: the words of ``--allow``.
    """
    many = tuple(patched)
    why = not_repeatable(unchanged)
    if kind in allowed:
        return Judged(same="allowed", repeatable=not why)
    if why:
        return Judged(same="by-rule" if kind == "rule" else "", why="" if kind == "rule" else why, repeatable=False)
    found = next(filter(None, (difference(unchanged[0], one) for one in many)), "")
    if not found:
        return Judged(same="bit-equal")
    if kind not in {"rule", "same"}:
        return Judged(same="", why=found)
    far = next(filter(None, (difference(unchanged[0], one, close=CLOSE) for one in many)), "")
    return Judged(same="" if far else "within", why=far)
