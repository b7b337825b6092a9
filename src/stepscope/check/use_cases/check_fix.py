"""The use case of ``stepscope check --fix`` and ``--diff``: applies the fixes that rules plan, in memory first."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stepscope.check.fixing import files, rounds
from stepscope.check.fixing.edits import CannotFixError
from stepscope.check.fixing.notebooks import NotebookContent
from stepscope.check.hits import FixSafety, Hit
from stepscope.check.registry import ALL
from stepscope.check.run import findings
from stepscope.check.source.versions import parse
from stepscope.check.use_cases import check as use_case
from stepscope.tables.check_report import CheckReport
from stepscope.tables.evidence import session_around
from stepscope.tables.findings import Diagnostic

NOT_FIXED = "DX073"
"""A fix that was requested but not applied."""


class Change(Struct, frozen=True, kw_only=True):
    """A file changed by fixes."""

    path: str
    old: bytes
    new: bytes


class FixRun(Struct, frozen=True, kw_only=True):
    """The planned result of fixing; nothing is written yet."""

    changes: tuple[Change, ...]
    done: tuple[str, ...]
    """One line for each fix: the place, the edit, the change in behaviour."""
    refused: tuple[Diagnostic, ...]
    """Fixes that were refused, with the reason."""


def fix(options: use_case.Options, *, unsafe: bool = False) -> FixRun:
    """Check files, and plan fixes for the reported findings.

    Args:
        options: what is checked.
        unsafe: also fixes that need review.

    Raises:
        CheckError: as ``check``.
    """
    held = dict(options.overlay)
    first = use_case.check(options)

    def again(contents: Mapping[str, bytes]) -> rounds.Hits:
        return _reported(use_case.check(replace(options, overlay={**held, **contents}, only=tuple(contents))))

    def read(path: str) -> bytes:
        return held[path] if path in held else Path(path).read_bytes()

    outcome = rounds.fix(
        _reported(first),
        read,
        again,
        version=parse(first.report.target.tensorflow) or (0, 0),
        allowed=("safe", "unsafe") if unsafe else ("safe",),
    )
    return FixRun(
        changes=tuple(Change(path=p, old=read(p), new=new) for p, new in sorted(outcome.contents.items())),
        done=tuple(_line(fixed) for fixed in outcome.done),
        refused=tuple(_refused(outcome.refused)),
    )


def of_rule(
    path: str,
    hits: Sequence[Hit],
    read: Callable[[str], bytes],
    again: Callable[[Mapping[str, bytes]], Mapping[str, Sequence[Hit]]],
    *,
    version: str,
    safety: FixSafety,
) -> dict[str, bytes]:
    """New contents of files after the fixes of one rule in one file.

    Args:
        path: the file.
        hits: all hits of the rule in it.
        read: a file's content.
        again: the rule's hits in files with other contents.
        version: of TensorFlow; "": unknown.
        safety: of the fixes to apply.
    """
    found = rounds.fix({path: hits}, read, again, version=parse(version) or (0, 0), allowed=(safety,))
    return found.contents


def report(options: use_case.Options, run: FixRun) -> CheckReport:
    """The report of what remains once the changes are written."""
    left = use_case.check(options).report
    return msgspec.structs.replace(left, fixed=len(run.done), diagnostics=(*left.diagnostics, *run.refused))


def write(changes: Iterable[Change]) -> list[Diagnostic]:
    """Write the changes to their files; return those that could not be written."""
    failed = []
    for change in changes:
        if session_around(Path(change.path)) is not None:
            failed.append(
                Diagnostic(code=NOT_FIXED, text=f"{change.path}: nothing was fixed: the file is part of a session")
            )
            continue
        try:
            files.write(Path(change.path), change.new, old=change.old)
        except CannotFixError as error:
            failed.append(Diagnostic(code=NOT_FIXED, text=f"{change.path}: nothing was fixed: {error}"))
    return failed


def diff(change: Change) -> str:
    """A change as a unified diff; for a notebook, one per changed cell, named ``cell 3`` of its path."""
    old, new = rounds.content_of(change.path, change.old), rounds.content_of(change.path, change.new)
    if isinstance(old, NotebookContent) and isinstance(new, NotebookContent):
        cells = zip(old.sources(), new.sources(), strict=True)
        return "".join(_diff(f"{change.path}:cell {number}", before, after) for (number, before), (_, after) in cells)
    return _diff(change.path, old.text, new.text)


def _diff(path: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), fromfile=path, tofile=path
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _reported(done: use_case.CheckOutcome) -> dict[str, list[Hit]]:
    """The hits behind the findings of a report; ignored and known ones are not fixed."""
    by_code = {rule.code: rule for rule in ALL}
    shown = set(done.report.findings)
    return {
        result.path: [h for h in result.hits if findings.finding(by_code[h.code], h, result.cells) in shown]
        for result in done.results
        if not result.skipped
    }


def _refused(refused: Iterable[rounds.AppliedFix]) -> Iterator[Diagnostic]:
    for fixed in refused:
        where = f"{fixed.hit.span.path}:{fixed.line}"
        yield Diagnostic(code=NOT_FIXED, text=f"{where}: {fixed.hit.code} not fixed: {fixed.refused}")


def _line(fixed: rounds.AppliedFix) -> str:
    where = f"{fixed.hit.span.path}:{fixed.line}"
    return f"{where}: {fixed.hit.code} {fixed.plan.title}. {fixed.plan.behaviour}"
