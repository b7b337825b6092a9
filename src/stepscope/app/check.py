"""The use case of ``stepscope check``: files in, findings out."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from stepscope.checker import discover, findings, run, versions
from stepscope.checker.context import Engine
from stepscope.checker.modules import Project
from stepscope.checker.registry import ALL
from stepscope.errors import UsageError
from stepscope.model.finding import Diagnostic, Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is checked, and for which versions."""

    paths: tuple[Path, ...]
    select: tuple[str, ...] = ()
    """Codes or their beginnings; empty: all rules."""
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    target_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What came of it."""

    findings: tuple[Finding, ...]
    diagnostics: tuple[Diagnostic, ...]
    files: int
    target: versions.Target


def check(options: Options) -> Checked:
    """Check files.

    Raises:
        UsageError: a path does not exist, or a code or version is none.
    """
    missing = [path for path in options.paths if not path.exists()]
    if missing:
        raise UsageError(f"{missing[0]} does not exist")
    rules = tuple(r for r in ALL if _wanted(r.code, options.select, options.ignore))
    files = [path.as_posix() for path in discover.discover(options.paths, options.exclude)]
    readers = {path: functools.partial(Path.read_bytes, Path(path)) for path in files}
    roots = [path.as_posix() if path.is_dir() else path.parent.as_posix() for path in options.paths]
    engine = Engine(Project(readers, roots), _target(options.target_version))
    by_code = {rule.code: rule for rule in rules}
    found: list[Finding] = []
    notes: list[Diagnostic] = []
    for result in run.check(engine, files, rules):
        module = engine.project.load(result.path)
        source = module.source if module is not None else None
        found += [findings.finding(by_code[hit.code], hit, source) for hit in result.hits]
        notes += _notes(result)
    return Checked(findings=tuple(found), diagnostics=tuple(notes), files=len(files), target=engine.target)


def _wanted(code: str, select: Iterable[str], ignore: Iterable[str]) -> bool:
    selected = tuple(select)
    return (not selected or code.startswith(selected)) and not code.startswith(tuple(ignore) or ("?",))


def _target(text: str) -> versions.Target:
    if not text:
        return versions.Target()
    version = versions.parse(text)
    if version is None:
        raise UsageError(f"{text!r} is no version of TensorFlow; expected something like 2.15")
    return versions.target(version, "--target-version")


def _notes(result: run.FileResult) -> list[Diagnostic]:
    notes = [Diagnostic(code="DX070", text=f"{result.path}: skipped: {result.skipped}")] if result.skipped else []
    return notes + [Diagnostic(code="DX071", text=f"{result.path}: {failure}") for failure in result.failures]
