"""Puts remedies into a job's environment, and nowhere else. Source of the lists' separators: jemalloc(3), ld.so(8)."""

from __future__ import annotations

import ctypes.util
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.launcher import layouts
from stepscope.model.report.remedies import ALLOCATORS, ENVIRONMENT_REMEDIES
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LISTS = {"MALLOC_CONF": ",", "GLIBC_TUNABLES": ":"}
"""Variables that are lists in which the last word counts: ours is appended to the user's."""
_PRELOAD = "LD_PRELOAD"
_OPERATORS = "libstdc++.so.6"
"""C++'s new and delete on malloc: an allocator that a program is linked with has others, which would take what the C
library gave for theirs. It stands behind the C library."""


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
            if remedy.alone:
                kept = [one for one in result.get(_PRELOAD, "").replace(" ", ":").split(":") if not _is_malloc(one)]
                result[_PRELOAD] = ":".join([*([_OPERATORS] if _installed(_OPERATORS) else []), *kept])
            _preload(result, remedy.preload)
        if remedy.built:
            problem = layouts.problem(remedy.variables[layouts.PAGES]) if layouts.PAGES in remedy.variables else ""
            if problem:
                raise UsageError(f"{option} {name}: {problem}")
            try:
                _preload(result, str(layouts.library()))
            except UsageError as error:
                raise UsageError(f"{option} {name}: {error}") from error
    return result


def shell_line(name: str, before: Mapping[str, str]) -> str:
    """The line that sets the remedy ``name`` in a shell whose environment is ``before``, for all that it starts.

    Raises:
        UsageError: as ``environment``.
    """
    remedy = ENVIRONMENT_REMEDIES[name]
    after = environment((name,), before)
    variables = [_PRELOAD] if remedy.preload or remedy.built else []
    return "export " + " ".join(f"{one}={shlex.quote(after[one])}" for one in (*variables, *remedy.variables))


def _preload(environment: dict[str, str], library: str) -> None:
    known = environment.get(_PRELOAD, "")
    if library not in known.split(":"):
        environment[_PRELOAD] = f"{library}:{known}" if known else library


def undone(ids: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Variables of the remedies ``ids`` that a process of the job lacks, because a script set them again."""
    found = []
    for remedy in (ENVIRONMENT_REMEDIES[name] for name in ids if name in ENVIRONMENT_REMEDIES):
        found += [key for key, value in remedy.variables.items() if not environment.get(key, "").endswith(value)]
        wanted = layouts.SOURCE.stem if remedy.built else remedy.preload
        if wanted and wanted not in environment.get(_PRELOAD, ""):
            found.append(_PRELOAD)
    return found


def _is_malloc(library: str) -> bool:
    """Whether an entry of LD_PRELOAD is an allocator."""
    return Path(library).name.startswith(ALLOCATORS)


def _installed(soname: str) -> bool:
    """Whether the dynamic linker would find a library."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and (Path(folder) / soname).exists():
            return True
    stem = soname.removeprefix("lib").partition(".so")[0]
    return ctypes.util.find_library(stem) == soname
