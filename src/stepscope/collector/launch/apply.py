"""Puts remedies into a job's environment, and nowhere else. Source of the lists' separators: jemalloc(3), ld.so(8)."""

from __future__ import annotations

import ctypes.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.errors import UsageError
from stepscope.model.report.remedies import ENVIRONMENT_REMEDIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LISTS = {"MALLOC_CONF": ",", "GLIBC_TUNABLES": ":"}
"""Variables that are lists in which the last word counts: ours is appended to the user's."""
_PRELOAD = "LD_PRELOAD"


def environment(ids: Sequence[str], before: Mapping[str, str], option: str = "--apply") -> dict[str, str]:
    """Copy ``before`` with the remedies ``ids`` applied, in their order; ``option`` named them, for messages.

    Raises:
        UsageError: the remedy does not exist, or its library is not installed.
    """
    result = dict(before)
    for name in ids:
        remedy = ENVIRONMENT_REMEDIES.get(name)
        if remedy is None:
            raise UsageError(f"{option} {name}: unknown remedy; expected one of {', '.join(ENVIRONMENT_REMEDIES)}")
        for variable, value in remedy.variables.items():
            separator = _LISTS.get(variable)
            known = result.get(variable, "")
            result[variable] = f"{known}{separator}{value}" if separator and known else value
        if remedy.preload:
            if not _installed(remedy.preload):
                raise UsageError(
                    f"{option} {name}: {remedy.preload} is not installed; run apt install {remedy.package}"
                )
            known = result.get(_PRELOAD, "")
            result[_PRELOAD] = f"{remedy.preload}:{known}" if known else remedy.preload
    return result


def undone(ids: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Variables of the remedies ``ids`` that a process of the job lacks, because a script set them again."""
    found = []
    for remedy in (ENVIRONMENT_REMEDIES[name] for name in ids if name in ENVIRONMENT_REMEDIES):
        found += [key for key, value in remedy.variables.items() if not environment.get(key, "").endswith(value)]
        if remedy.preload and remedy.preload not in environment.get(_PRELOAD, ""):
            found.append(_PRELOAD)
    return found


def _installed(soname: str) -> bool:
    """Whether the dynamic linker would find a library."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and (Path(folder) / soname).exists():
            return True
    stem = soname.removeprefix("lib").partition(".so")[0]
    return ctypes.util.find_library(stem) == soname
