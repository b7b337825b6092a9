"""Known defects of frameworks, NumPy and CUDA that cost time or memory, by installed version.

The data are in advisories.json, each with the address of the issue in which the defect was confirmed. Nothing is stated
that the source does not say: a range ends at the first version that somebody reported as free of the defect.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARTS = 3
Version = tuple[int, ...]


class Advisory(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A known defect. It concerns a process if its versions are in all ranges."""

    id: str
    """Tracker and number: tensorflow-33030."""
    source: str
    """Address of the issue."""
    packages: dict[str, tuple[str, str]]
    """By package (or python): the first affected version, and the first that is not; "" for either: none is known."""
    what: str
    """Predicate of a sentence about the first package."""
    remedy: str
    calls: tuple[str, ...] = ()
    """Qualified names whose repeated call shows the defect."""
    runs: tuple[str, ...] = ()
    """Qualified names of which one call is enough."""
    builds: bool = False
    """Whether it shows where several models are built."""
    mentions: str = ""
    """Word of the finding without which the defect is not what was measured."""
    machine: str = ""
    """Architecture of the only processors that have it, as the kernel names it; "": all."""
    findings: tuple[str, ...] = ()
    """Codes of the findings that measure its symptom; without any, a run says nothing."""
    mismatch: bool = False
    """Whether the packages do not fit each other, whatever the job does: for ``doctor``."""
    check: str = ""
    """Check of ``doctor`` that sees its symptom; "": none does."""
    study: tuple[str, ...] = ()
    """Rows of the FSE'22 study that it explains."""

    @property
    def package(self) -> str:
        """The package that has the defect."""
        return next(iter(self.packages))

    def concerns(self, versions: Mapping[str, str]) -> bool:
        """Whether all ranges hold; a package of unknown version is in none."""
        return all(name in versions and _within(versions[name], *bounds) for name, bounds in self.packages.items())


def _within(version: str, first: str, fixed: str) -> bool:
    have = parsed(version)
    return bool(have) and (not first or have >= parsed(first)) and (not fixed or have < parsed(fixed))


def parsed(version: str) -> Version:
    """The leading numbers of a version: "2.16.1rc0" is (2, 16, 1); () if it has none."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found.group().split(".")[:_PARTS])) if found else ()


@cache
def everything() -> tuple[Advisory, ...]:
    """All advisories, in the order of the file."""
    text = resources.files("stepscope.tables").joinpath("advisories.json").read_bytes()
    return msgspec.json.decode(text, type=tuple[Advisory, ...])


def concerning(versions: Mapping[str, str], machine: str = "") -> list[Advisory]:
    """Those that concern a process with these packages, on a processor of this architecture ("": not known)."""
    return [one for one in everything() if one.machine in {"", machine} and one.concerns(versions)]
