"""The use cases ``disable --now`` and ``enable --again``; what is switched off, for ``ps`` and ``enable --status``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.tables.errors import UsageError
from stepscope.wire import off

if TYPE_CHECKING:
    from collections.abc import Sequence


def switch_off(program: str) -> str:
    """Switch measuring off for a program of this user ("": for all), also in running jobs; returns lines for the user.

    Raises:
        UsageError: the user's file cannot be written.
    """
    path = off.user_file()
    known = off.lines_of(path)
    if program and known == []:
        return f"measuring is switched off for everything by {path}"
    name = _named(program)
    lines = [*(known or []), name] if name else []
    _write(path, lines)
    what = name or "every job of this user"
    return (
        f"measuring is switched off for {what}: {path}; running jobs are left within 10 s\n"
        f"take it back: stepscope enable --again{f' {program}' if program else ''}"
    )


def switch_on(program: str) -> str:
    """Take back what this user, or harm, switched off, for a program or all; returns lines for the user.

    Raises:
        UsageError: nothing of that is switched off, or a file cannot be written.
    """
    names = {program, _named(program), f"-m {program}"}
    path = off.user_file()
    known, harmed = off.lines_of(path), off.harmed()
    mine = [line for line in known or [] if not program or line in names]
    healed = [
        entry["program"] for entry in harmed if not program or names & {entry["program"], off.short(entry["program"])}
    ]
    if not mine and not healed and (program or known is None):
        what = f"{program} is not switched off" if program else "nothing of this user is switched off"
        raise UsageError("; ".join([what, *lines()]))
    left = [line for line in known or [] if line not in mine]
    if left:
        _write(path, left)
    elif known is not None and (mine or not program):
        Path(path).unlink(missing_ok=True)
    if healed:
        _write_harmed([entry for entry in harmed if entry["program"] not in healed])
    what = ", ".join(dict.fromkeys([*mine, *healed])) or "every job of this user"
    return "\n".join(
        [f"jobs are measured again from their next start: {what}", *(f"but still: {line}" for line in lines())]
    )


def why(argv: Sequence[str], *, harmed: bool) -> str:
    """Why a command must not be measured, "" if it may be; ``harmed``: also because its program came to harm."""
    try:
        own = off.program_of(argv, str(Path.cwd()))
    except OSError:
        own = ""
    above = off.programs(os.getpid())
    by_file = off.why(lambda: [own, *above], harmed=False)
    harm = off.harm(lambda: [own]) if harmed and not by_file else ""
    return f"{harm}; with `run --measure` it is measured all the same" if harm else by_file


def lines() -> list[str]:
    """What is switched off, one line each."""
    found = []
    for path in (off.HOST_FILE, off.user_file()):
        programs = off.lines_of(path)
        if programs is not None:
            found.append(f"measuring is switched off for {', '.join(programs) or 'everything'} by {path}")
    return [*found, *(off.told(entry) for entry in off.harmed())]


def _named(program: str) -> str:
    """A program as a line of the file: the path of a script that is there, else as it was typed."""
    return os.path.realpath(program) if program and Path(program).is_file() else program


def _write(path: str, programs: list[str]) -> None:
    try:
        off.replace_file(path, "".join(f"{program}\n" for program in programs))
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}; expected a folder of your own") from error


def _write_harmed(entries: list[dict[str, str]]) -> None:
    try:
        off.write_harmed(entries)
    except OSError as error:
        raise UsageError(
            f"{off.harmed_file()} cannot be written: {error.strerror}; expected a file of your own"
        ) from error
