"""Run the static checker on a session's sources, for the versions that its job ran with.

Limited in time, so that it does not slow reports; whatever is skipped is listed.
"""

from __future__ import annotations

import functools
import os
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from stepscope.check.context import Engine
from stepscope.check.hits import Hit
from stepscope.check.registry import ALL
from stepscope.check.rule import Rule
from stepscope.check.run import findings, run
from stepscope.check.run.plan import Plan
from stepscope.check.source import versions
from stepscope.check.source.modules import Project
from stepscope.tables.findings import Diagnostic, Finding

if TYPE_CHECKING:
    from stepscope.derive.view import SessionView

MAX_LINES = 5_000
"""Lines over all files, taken first from files in which steps spend most time. Measured: 0.1 s of CPU time per thousand
lines of pure TensorFlow programs, a third of that for a library."""
MAX_CPU_S = 0.25
"""No further file is started after this. Source: a report may take 0.3 s longer for it."""
MAX_NAMED = 3
"""Most files named in the command that lists the rest; beyond this, their folder is named."""
LEGACY_KERAS = 2


class StaticHit(Struct, frozen=True, kw_only=True):
    """A hit with its rule, and the finding that it makes; files are named as the session names them (absolute)."""

    rule: Rule
    hit: Hit
    finding: Finding
    edit: str | None = None
    """The command that shows what the checker would change, from the job's working directory."""


class StaticCheck(Struct, frozen=True, kw_only=True):
    """The outcome of the static check."""

    hits: tuple[StaticHit, ...]
    target: versions.Target
    files: int
    lines: int
    rules: int
    left_out: tuple[str, ...] = ()
    """Absolute paths with a reason each."""
    diagnostics: tuple[Diagnostic, ...] = ()


def check(
    view: SessionView,
    order: Iterable[str],
    *,
    rules: tuple[Rule, ...] = ALL,
    clock: Callable[[], float] = time.process_time,
) -> StaticCheck | None:
    """Check the session's sources; None if it has none or the job used neither TensorFlow nor Keras.

    Args:
        view: the session.
        order: absolute paths, the most important first; sources that are not among them come last.
        rules: the rules to run; those that do not apply to the job's version are skipped.
        clock: seconds of CPU time.
    """
    sources, target = view.session.sources, target_of(view.frameworks)
    if not sources or target is None:
        return None
    began = clock()
    ranked = list(dict.fromkeys([*(p for p in order if p in sources), *sorted(sources)]))
    chosen, left_out = _affordable(ranked, sources)
    readers = {path: functools.partial(str.encode, sources[path]) for path in chosen}
    engine = Engine(Project(readers, [view.session.manifest.cwd or "/"]), target)
    todo = Plan(rules, target.tensorflow)
    hits: list[StaticHit] = []
    notes: list[Diagnostic] = []
    files = lines = 0
    by_code = {rule.code: rule for rule in rules}
    for path in chosen:
        if clock() - began > MAX_CPU_S:
            left_out.append(f"{path}: skipped, time limit reached")
            continue
        result = run.check_file(engine, path, todo)
        if result.skipped:
            left_out.append(f"{path}: {result.skipped}")
            continue
        files, lines = files + 1, lines + _lines(sources[path])
        notes += [Diagnostic(code="DX071", text=f"{path}: a rule failed: {failure}") for failure in result.failures]
        for hit in result.hits:
            rule = by_code[hit.code]
            edit = _edit(target, hit, view.place(path, 1).file)
            hits.append(StaticHit(rule=rule, hit=hit, finding=findings.finding(rule, hit), edit=edit))
    return StaticCheck(
        hits=tuple(hits),
        target=target,
        files=files,
        lines=lines,
        rules=sum(rule.applies(target.tensorflow) for rule in rules),
        left_out=tuple(left_out),
        diagnostics=tuple(notes),
    )


def target_of(frameworks: Mapping[str, str]) -> versions.Target | None:
    """The versions that a job ran with, by the names of the frameworks that it imported; None without any of them."""
    tensorflow = versions.parse(frameworks.get("tensorflow", ""))
    keras = versions.parse(frameworks.get("keras", ""))
    legacy = LEGACY_KERAS if "tf_keras" in frameworks and keras is None else None
    if tensorflow is not None:
        return versions.target(tensorflow, "the job", keras[0] if keras else legacy, oldest=True)
    if keras is not None or legacy is not None:
        return versions.target(versions.NEWEST, "the job", keras[0] if keras else legacy)
    return None


def command(target: versions.Target, found: Sequence[Finding]) -> str:
    """The command that shows static findings again; "" without any."""
    files = sorted({f.where[0].file for f in found})
    if not files:
        return ""
    if len(files) > MAX_NAMED:
        files = [os.path.commonpath(files) or "."] if len({f.startswith("/") for f in files}) == 1 else ["."]
    return shlex.join(["stepscope", "check", "--show-info", *_version(target), *files])


def _edit(target: versions.Target, hit: Hit, file: str) -> str | None:
    """The command that shows what the checker would change for a hit's rule in its file; None where it cannot."""
    if hit.fix is None:
        return None
    look = [] if hit.fix.safety == "safe" else ["--unsafe-fixes"]
    look += ["--show-info"] if hit.reported_severity == "info" else []
    return shlex.join(["stepscope", "check", "--diff", *look, *_version(target), "--select", hit.code, file])


def _version(target: versions.Target) -> tuple[str, ...]:
    """The option that names the job's version, where it is not the newest one."""
    version = ".".join(map(str, target.tensorflow))
    return () if target.tensorflow == versions.NEWEST else ("--target-version", version)


def _affordable(ranked: Iterable[str], sources: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The files to check, and the skipped files with the reason."""
    chosen: list[str] = []
    left_out: list[str] = []
    total = 0
    for path in ranked:
        lines = _lines(sources[path])
        if total + lines > MAX_LINES:
            left_out.append(f"{path}: skipped, its {lines:,} lines exceed the {MAX_LINES:,} that a report checks")
        else:
            total += lines
            chosen.append(path)
    return chosen, left_out


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n"))
