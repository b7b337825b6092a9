"""The use case of ``stepscope check --fix`` and ``--diff``: what rules plan is done, in memory first."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from stepscope.app import check as use_case
from stepscope.checker.fixing import files, rounds
from stepscope.checker.fixing.edits import CannotFixError
from stepscope.checker.fixing.notebooks import NotebookContent
from stepscope.checker.hits import Hit
from stepscope.checker.registry import ALL
from stepscope.checker.run import findings
from stepscope.checker.source.versions import parse
from stepscope.model.report.check import CheckReport
from stepscope.model.report.finding import Diagnostic
from stepscope.store.evidence import session_around

NOT_FIXED = "DX073"
"""A fix that was asked for and not done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A file that fixes change."""

    path: str
    old: bytes
    new: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FixRun:
    """What fixing comes to. Nothing is written yet."""

    changes: tuple[Change, ...]
    done: tuple[str, ...]
    """A line for each fix: where, what is done, what changes in behaviour."""
    refused: tuple[Diagnostic, ...]
    """What was to be fixed and is not, with the reason."""


def fix(options: use_case.Options, *, unsafe: bool = False) -> FixRun:
    """Check files, and plan the fixes of what is reported.

    Args:
        options: what is checked.
        unsafe: also the fixes that somebody has to look at.

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


def report(options: use_case.Options, run: FixRun) -> CheckReport:
    """The report of what is left once the changes are written."""
    left = use_case.check(options).report
    return msgspec.structs.replace(left, fixed=len(run.done), diagnostics=(*left.diagnostics, *run.refused))


def write(changes: Iterable[Change]) -> list[Diagnostic]:
    """Put changes into their files; what could not be written."""
    failed = []
    for change in changes:
        if session_around(Path(change.path)) is not None:
            failed.append(Diagnostic(code=NOT_FIXED, text=f"{change.path}: nothing was fixed: it lies in a session"))
            continue
        try:
            files.write(Path(change.path), change.new, old=change.old)
        except CannotFixError as error:
            failed.append(Diagnostic(code=NOT_FIXED, text=f"{change.path}: nothing was fixed: {error}"))
    return failed


def diff(change: Change) -> str:
    """A change as a unified diff; of a notebook the cells that change, as ``cell 3`` of its path."""
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


def _reported(done: use_case.Checked) -> dict[str, list[Hit]]:
    """The hits behind the findings of a report: what is ignored or known is not fixed either."""
    by_code = {rule.code: rule for rule in ALL}
    shown = set(done.report.findings)
    return {
        result.path: [h for h in result.hits if findings.finding(by_code[h.code], h, result.cells) in shown]
        for result in done.results
        if not result.skipped
    }


def _refused(refused: Iterable[rounds.Fixed]) -> Iterator[Diagnostic]:
    for fixed in refused:
        where = f"{fixed.hit.span.path}:{fixed.hit.span.line}"
        yield Diagnostic(code=NOT_FIXED, text=f"{where}: {fixed.hit.code} not fixed: {fixed.refused}")


def _line(fixed: rounds.Fixed) -> str:
    where = f"{fixed.hit.span.path}:{fixed.hit.span.line}"
    return f"{where}: {fixed.hit.code} {fixed.plan.title}. {fixed.plan.behaviour}"
