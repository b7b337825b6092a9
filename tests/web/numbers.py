"""Numbers that texts show, and whether each is one of a report's, rounded as it is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMES = {"ns": 1.0, "us": 1e3, "\u00b5s": 1e3, "ms": 1e6, "s": 1e9}
SIZES = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
SHOWN = re.compile(
    r"(?<![\w.:/-])([+\u2212-]?\d[\d,]*(?:\.\d+)?)\s?(ns|us|\u00b5s|ms|s|%|B|KiB|MiB|GiB|samples/s|steps/s)(?![\w/])"
)
MINUTES = re.compile(r"(\d+) min (\d+) s\b")
NS = re.compile(r"(^|_)ns(_|$)")
MS_OF_SERIES = re.compile(r"_ms\b|^anat:|_ms_")


@dataclass(frozen=True)
class Shown:
    """A number with its unit."""

    text: str
    value: float
    """In the smallest unit of its kind: ns, bytes, the share."""
    slack: float
    """Half of the last digit."""
    kind: str


def shown(text: str) -> Iterator[Shown]:
    """The numbers of a text that have a unit."""
    for found in MINUTES.finditer(text):
        yield Shown(found[0], (60 * float(found[1]) + float(found[2])) * 1e9, 0.5e9, "time")
    for found in SHOWN.finditer(MINUTES.sub("", text)):
        number, unit = found[1].replace(",", "").replace("\u2212", "-"), found[2]
        last = 10.0 ** -len(number.partition(".")[2])
        scale, kind = 1.0, unit
        for units, name in ((TIMES, "time"), (SIZES, "size"), ({"%": 0.01}, "share")):
            if unit in units:
                scale, kind = units[unit], name
        # 18.0 and 18 are one number: three digits are shown, and blank ones dropped
        yield Shown(found[0], float(number) * scale, max(last, _third_digit(float(number))) / 2 * scale * 1.001, kind)


def _third_digit(number: float) -> float:
    size = abs(number)
    return 1.0 if size >= 100 else 0.1 if size >= 10 else 0.01


class Pool:
    """Every number of a JSON document, by what it may be shown as."""

    def __init__(self, document: object) -> None:
        """Walk through it; numbers within its texts count as well."""
        self._values: dict[str, list[float]] = {"time": [], "size": [], "share": [], "rate": []}
        self._walk("", document)

    def add(self, kind: str, value: float) -> None:
        """A number that is made of several of the document's, as the test says."""
        self._values[kind].append(value)

    def _walk(self, key: str, node: object) -> None:
        if isinstance(node, dict):
            for name, value in node.items():
                self._walk(name, value)
        elif isinstance(node, list):
            for value in node:
                self._walk(key, value)
        elif isinstance(node, str):
            for one in shown(node):
                self._values.get(one.kind, self._values["rate"]).append(one.value)
        elif isinstance(node, (int, float)) and not isinstance(node, bool):
            self._number(key, float(node))

    def _number(self, key: str, value: float) -> None:
        kinds = ["share", "rate"]
        if NS.search(key) or key in {"value", "threshold"}:
            kinds.append("time")
        if "bytes" in key or key in {"value", "threshold"}:
            kinds.append("size")
        if MS_OF_SERIES.search(key):
            self._values["time"].append(value * 1e6)
        for kind in kinds:
            self._values[kind].append(value)

    def holds(self, number: Shown) -> bool:
        """Whether it is one of them, rounded."""
        values = self._values.get(number.kind, self._values["rate"])
        return any(abs(value - number.value) <= number.slack for value in values)

    def strange(self, text: str) -> list[str]:
        """Numbers of a text that the document does not have."""
        return [one.text for one in shown(text) if not self.holds(one)]
