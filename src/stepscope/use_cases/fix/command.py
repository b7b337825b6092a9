"""The use case ``fix``: run a program, try the edits that its findings have, keep those that are proved, give a patch.

An edit is tried on the program with all edits so far, and what it logs is compared with the unchanged program. After
each edit that is kept the program is looked at again.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from stepscope._version import __version__
from stepscope.launcher import mask, scratch
from stepscope.model.report.fix import FixReport, TriedEdit
from stepscope.sandbox import isolation
from stepscope.tables.errors import TargetError, UsageError
from stepscope.use_cases.fix import branches, candidates, edits, patches, proof
from stepscope.use_cases.fix import said as logs
from stepscope.use_cases.fix.job import SHARE, Job, TooLongError, program, script
from stepscope.use_cases.whatif import options as whatif_options
from stepscope.use_cases.whatif.runs import Runner

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.model.report.fix import EditClass, FixQuestion
    from stepscope.model.report.report import Report
    from stepscope.use_cases.fix.candidates import Candidate, Program

SECONDS = 900.0
"""Time for all runs."""
NEEDED_RUNS = 1 + 2 * (proof.CHOOSING + proof.LOOKS[-1])
"""Runs that prove one edit: the first one, and both sides of all rounds."""
HIDDEN = frozenset({"no-gain", "not-sure"})
"""Outcomes that may be others once another edit is kept: causes hide each other."""
UNCHANGED: frozenset[EditClass] = frozenset({"rule", "same"})
"""Classes of edits that go into a patch that is left unproven."""
PROVEN, NOTHING, UNPROVEN = 0, 1, 3
"""Exit codes (docs/exit-codes.md)."""


class FixOptions(Struct, frozen=True, kw_only=True):
    """Options of the command."""

    argv: tuple[str, ...]
    """The program's command line, from ``record.job_command``."""
    seconds: float = SECONDS
    """Time for all runs."""
    allow: tuple[str, ...] = ()
    """What edits may change: words of ``edits.ALLOW``."""
    output: Path | None = None
    """Where the patch is written; None: nowhere."""
    branch: str = ""
    """New branch that gets it; "": none."""
    network: bool = False
    """Whether the program may reach the network."""


class _Found(Struct, kw_only=True):
    """What is known so far."""

    program: Program
    first: dict[str, bytes]
    """The files of the program, unchanged."""
    texts: dict[str, bytes] = field(default_factory=dict)
    """New contents of files, by all edits that are kept."""
    kinds: frozenset[EditClass] = frozenset()
    tried: list[TriedEdit] = field(default_factory=list)
    known: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Outcomes of edits by their keys."""
    questions: dict[tuple[str, str, int], FixQuestion] = field(default_factory=dict)
    unproven: str = ""
    stop: str = ""
    last: proof.Verdict | None = None
    """Of the last edit that was kept."""


def fix(options: FixOptions, say: Callable[[str], object]) -> FixReport:
    """Run everything. ``say`` gets one line per run.

    Raises:
        UsageError: what is asked for cannot be done.
        TargetError: the program cannot be started, or fails as it is.
        CaptureError: nothing could be recorded.
    """
    top = check(options)
    with tempfile.TemporaryDirectory(prefix=scratch.prefix("fix"), ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        how = isolation.Isolation(keep=(folder,), network=options.network)
        problem = isolation.problem(how)
        runner = Runner(argv=options.argv, other=(), folder=folder, seconds=0.0, isolation=how, split=True)
        job = Job(runner, options.seconds, say)
        if problem:
            found = _unproven(_start(None, options), None, f"the runs cannot be isolated here: {problem}")
        else:
            found = _with_runs(job, options, say)
        report = _report(options, found, job, top)
        if report.patch and not found.unproven:
            report = _total(report, found, job)
        report = replace(report, runs=job.runs, seconds=job.spent_s)
    return _written(report, options, found, top)


def check(options: FixOptions) -> Path | None:
    """Refuse what cannot be done, before anything runs.

    Returns:
        The top folder of the program's repository, if it lies in one.

    Raises:
        UsageError: a word of ``allow`` is not known, the branch cannot be made, or the program cannot be tried alone.
    """
    unknown = next((word for word in options.allow if word not in edits.ALLOW), "")
    if unknown:
        raise UsageError(f"--allow {unknown}: expected {' or '.join(edits.ALLOW)}")
    whatif_options.check(whatif_options.WhatIfOptions(argv=options.argv))
    if options.output is not None and not options.output.absolute().parent.is_dir():
        raise UsageError(f"-o {options.output}: there is no folder {options.output.parent}")
    files = script(options.argv)
    top = branches.top_of(Path(files[0]).parent if files else Path.cwd())
    if options.branch:
        branches.check(top, options.branch, {name: Path(name).read_bytes() for name in files})
    return top


def exit_code(report: FixReport) -> int:
    """What the command exits with."""
    if report.problem:
        return UsageError.exit_code
    if not report.patch:
        return NOTHING
    return UNPROVEN if report.unproven else PROVEN


def _start(seen: Program | None, options: FixOptions) -> _Found:
    own = seen or program(script(options.argv), Path.cwd(), {}, "")
    return _Found(program=own, first=dict(own.texts))


def _with_runs(job: Job, options: FixOptions, say: Callable[[str], object]) -> _Found:
    """Everything where runs leave nothing behind."""
    too_long = f"one run takes more than a third of --time ({options.seconds:.0f} s)"
    try:
        report, seen = job.look({})
    except TooLongError:
        return _unproven(_start(None, options), None, too_long)
    found = _start(seen, options)
    try:
        _climb(job, report, found, options, say)
    except TooLongError:
        return _unproven(found, report, too_long)
    return found


def _climb(job: Job, report: Report | None, found: _Found, options: FixOptions, say: Callable[[str], object]) -> None:
    """Try edits until none is left or the time is over."""
    allowed = frozenset(options.allow)
    while report is not None:
        todo = _todo(report, found, allowed)
        report = None
        for one in todo:
            say(f"to try: {one.title} ({_place(one, found)})")
            verdict = _proved(job, one, found, allowed)
            found.tried.append(_tried(one, found, verdict))
            found.known[one.key(found.program)] = verdict.outcome
            if verdict.outcome == "no-time":
                found.stop = "the time is over"
                return
            if verdict.outcome == "kept":
                found.texts.update(one.texts)
                found.kinds |= {one.kind}
                found.last = verdict
                found.known = {key: what for key, what in found.known.items() if what not in HIDDEN}
                report = _again(job, found)
                break
    found.stop = found.stop or "no further edit is known"


def _again(job: Job, found: _Found) -> Report | None:
    """A look at the program with all edits that are kept; None if there is none."""
    if job.left_s < job.longest_s:
        found.stop = "the time is over"
        return None
    try:
        report, found.program = job.look(found.texts)
    except (TargetError, TooLongError) as error:
        found.stop = f"what is left cannot be seen: {error}"
        return None
    found.first = {**found.program.texts, **found.first}
    return report


def _todo(report: Report | None, found: _Found, allowed: frozenset[str]) -> list[Candidate]:
    """Edits that were not tried yet; what is not allowed becomes a question."""
    many, asked = candidates.of_run(report, found.program)
    fresh = [one for one in many if one.key(found.program) not in found.known]
    open_ = [
        candidates.to_allow(one, _shown(one.file, found))
        for one in fresh
        if one.kind in edits.ALLOW and one.kind not in allowed
    ]
    for question in (*asked, *open_):
        found.questions.setdefault((question.code, question.file, question.line), question)
    return [one for one in fresh if one.kind not in edits.ALLOW or one.kind in allowed]


def _proved(job: Job, one: Candidate, found: _Found, allowed: frozenset[str]) -> proof.Verdict:
    """What rounds say of an edit, unless unchanged runs have shown that they can say nothing."""
    why = logs.not_repeatable(job.unchanged) if len(job.unchanged) >= proof.CHOOSING else ""
    if why and one.kind not in {"rule", *allowed}:
        return proof.Verdict(outcome="not-repeatable", why=why)
    as_it_was = partial(job.timed, dict(found.texts), "with the patch so far" if found.texts else "unchanged")
    edited = partial(job.timed, {**found.texts, **one.texts}, "with the edit")
    if found.kinds.isdisjoint(edits.ALLOW):
        return proof.prove(as_it_was, edited, job.unchanged, edits.weakest(found.kinds | {one.kind}), allowed)
    logged: list[logs.Said] = []  # the unchanged program computes something else by what was allowed

    def before() -> proof.Timed:
        ran = as_it_was()
        logged.append(ran.said)
        return ran

    return proof.prove(before, edited, logged, one.kind, allowed)


def _tried(one: Candidate, found: _Found, verdict: proof.Verdict) -> TriedEdit:
    before = {path: found.texts.get(path, found.first.get(path, b"")) for path in one.texts}
    return TriedEdit(
        code=one.code,
        title=one.title,
        file=_shown(one.file, found),
        line=one.line,
        kind=one.kind,
        outcome=verdict.outcome,
        same=verdict.same,
        why=verdict.why,
        measure=verdict.measure,
        choosing=verdict.choosing,
        fresh=verdict.fresh,
        diff="".join(
            patches.diff(_shown(path, found), before[path].decode(), data.decode()) for path, data in one.texts.items()
        ),
    )


def _unproven(found: _Found, report: Report | None, why: str) -> _Found:
    """The patch of all edits that by their rules change nothing, or the last digits; none is run."""
    found.unproven, found.stop = why, "no edit can be proved here"
    done: set[tuple[str, str]] = set()
    while True:
        many, asked = candidates.of_run(report, found.program)
        for question in asked:
            found.questions.setdefault((question.code, question.file, question.line), question)
        fresh = (one for one in many if one.kind in UNCHANGED and (one.title, one.file) not in done)
        one = next(fresh, None)
        if one is None:
            return found
        done.add((one.title, one.file))
        found.tried.append(_tried(one, found, proof.Verdict(outcome="unproven", why=why)))
        found.texts.update(one.texts)
        found.program = replace(found.program, texts={**found.program.texts, **one.texts})


def _report(options: FixOptions, found: _Found, job: Job, top: Path | None) -> FixReport:
    base = patches.base_of(sorted(found.texts), top, Path.cwd())
    why = logs.not_repeatable(job.unchanged) if job.unchanged else "it was not run twice"
    return FixReport(
        version=__version__,
        command=tuple(mask.mask_command(options.argv)),
        edits=tuple(found.tried),
        questions=tuple(found.questions.values()),
        patch=patches.patch(base, found.first, found.texts),
        folder=str(base),
        repeatable=not why if len(job.unchanged) >= proof.CHOOSING else None,
        compared=why or f"{job.unchanged[0].count} numbers, and the words around them",
        unproven=found.unproven,
        proof=_command(options, isolated=job.runs > 0) if found.unproven and found.texts else "",
        stop=found.stop,
    )


def _command(options: FixOptions, *, isolated: bool) -> str:
    """The command that proves a patch that is left unproven."""
    job = mask.mask_command(options.argv)
    if not isolated:
        return shlex.join(
            ["stepscope", "whatif", "--yes", "--whole", "--against", options.branch or "BRANCH", "--", *job]
        )
    hours = options.seconds * NEEDED_RUNS / SHARE / 3600
    return shlex.join(
        ["stepscope", "fix", f"--time={hours:.2g}h", *(f"--allow={one}" for one in options.allow), "--", *job]
    )


def _total(report: FixReport, found: _Found, job: Job) -> FixReport:
    """The whole patch against the unchanged program: the rounds of its only edit, else rounds made for it."""
    last = found.last
    if last is None:
        return report
    if len(report.kept) == 1:
        return replace(report, total=last.fresh, measure=last.measure)
    rounds = proof.total(partial(job.timed, {}, "unchanged"), partial(job.timed, dict(found.texts), "with the patch"))
    measure = proof.measure_of(rounds) if rounds else "run"
    return replace(report, total=proof.measured(rounds, measure), measure=measure)


def _written(report: FixReport, options: FixOptions, found: _Found, top: Path | None) -> FixReport:
    """The report, once the patch is where it was asked for, or with why it is not there."""
    if not report.patch:
        return report
    try:
        if options.output is not None:
            options.output.write_text(report.patch, encoding="utf-8", newline="")
        if options.branch and top is not None:
            _branch(report, options.branch, found, top)
            return replace(report, branch=options.branch)
    except OSError as error:
        return replace(report, problem=f"{options.output} cannot be written: {error.strerror}")
    except UsageError as error:
        return replace(report, problem=str(error))
    return report


def _branch(report: FixReport, name: str, found: _Found, top: Path) -> None:
    files = {path: data for path, data in found.texts.items() if data != found.first[path]}
    outside = next((path for path in files if not Path(path).is_relative_to(top)), "")
    if outside:
        raise UsageError(f"--branch {name}: {outside} lies outside of {top}")
    branches.check(top, name, {path: found.first[path] for path in files})
    branches.make(top, name, files, message(report))


def message(report: FixReport) -> str:
    """The message of the commit."""
    head = f"Apply {len(report.kept)} edit{'s' if len(report.kept) > 1 else ''} of stepscope fix"
    return "\n".join([head, "", *(f"- {one.file}:{one.line}: {one.title}" for one in report.kept)])


def _place(one: Candidate, found: _Found) -> str:
    return f"{_shown(one.file, found)}:{one.line}" if one.line else _shown(one.file, found)


def _shown(path: str, found: _Found) -> str:
    cwd = found.program.cwd
    return os.path.relpath(path, cwd) if Path(path).is_relative_to(cwd) else path
