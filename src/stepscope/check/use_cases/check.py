"""The use case of ``stepscope check``: files in, findings out."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from stepscope._version import __version__
from stepscope.check.registry import ALL
from stepscope.check.rule import Rule
from stepscope.check.run import baseline, cache, findings, run, settings, work
from stepscope.check.source import discover, pins, versions
from stepscope.tables import evidence
from stepscope.tables.check_report import CheckedFor, CheckReport
from stepscope.tables.errors import CheckError, UsageError
from stepscope.tables.findings import Diagnostic, Finding

_ORDER = ("error", "warning", "info")
_CODES = frozenset(rule.code for rule in ALL)


class Options(Struct, frozen=True, kw_only=True):
    """What is checked and how; unset options come from the project's settings."""

    paths: tuple[Path, ...]
    select: tuple[str, ...] = ()
    """Codes or prefixes of codes; empty: all rules."""
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    target_version: str = ""
    baseline: Path | None = None
    read_baseline: bool = True
    """Whether a baseline, also that of the settings, is read; not where a new one is written."""
    cache: bool = True
    """Reuse results of unchanged files from the last check, and store new results."""
    only: tuple[str, ...] = ()
    """Files whose findings are reported; other files are only read for context. Empty: all."""
    show_info: bool | None = True
    """Whether infos are findings of the report, or only counted; None: as the settings say."""
    fail_on: str = ""
    """Severity from which findings make a check fail: error, warning, info, never; "": as the settings say."""
    overlay: Mapping[str, bytes] = field(default_factory=dict)
    """Unsaved content of files by path, from an editor."""


class CheckOutcome(Struct, frozen=True, kw_only=True):
    """Outcome of a check: the report, and the hits behind it, which fixes need."""

    report: CheckReport
    results: tuple[run.FileResult, ...]


def check(options: Options) -> CheckOutcome:
    """Check files.

    Raises:
        CheckError: a path does not exist, or settings, a code, a version or the baseline are invalid.
        UsageError: a path is a session, or lies in one.
    """
    missing = [path for path in options.paths if not path.exists() and path.as_posix() not in options.overlay]
    if missing:
        raise CheckError(f"{missing[0]} does not exist")
    refuse_sessions((*options.paths, *map(Path, options.only)))
    project, home = settings.load(options.paths[0])
    rules = select(options.select or project.select, (*options.ignore, *project.ignore))
    of_project = {home: project.exclude} if home is not None else {}
    found_files = discover.discover(options.paths, options.exclude, evidence.leads_in, of_project)
    files = [path.as_posix() for path in found_files]
    target = _target(options, project)
    held = [path for path in options.overlay if path not in files]
    every = (*files, *held)
    job = work.FilesToCheck(
        files=every,
        todo=tuple(path for path in every if not options.only or path in options.only),
        roots=tuple(_roots(options.paths)),
        codes=tuple(rule.code for rule in rules),
        target=target,
        overlay=options.overlay,
    )
    raw = _cached(job, options) if options.cache and not (options.overlay or options.only) else work.run(job).results
    results = tuple(_without(project, home, result) for result in raw)
    found = [finding for result in results for finding in _findings(result)]
    known = _baseline(options, project, home)
    left, hidden, gone = _new(found, known, every, job.codes)
    infos = _infos(options, project)
    shown = tuple(finding for finding in left if infos or finding.severity != "info")
    notes = [note for result in results for note in _notes(result, rules)]
    if gone and known is not None and not (options.only or options.overlay):
        notes.append(_stale(known, gone))
    report = CheckReport(
        version=__version__,
        target=CheckedFor(tensorflow=".".join(map(str, target.tensorflow)), keras=target.keras, source=target.source),
        files=len(files),
        not_analysed=tuple(result.path for result in results if not result.analysed and not result.skipped),
        rules=tuple(rule.code for rule in rules),
        findings=shown,
        infos=len(left) - len(shown),
        ignored=sum(result.ignored for result in results),
        known=hidden,
        diagnostics=tuple(notes),
    )
    return CheckOutcome(report=report, results=results)


def of_text(options: Options, name: str, text: bytes) -> Options:
    """The options to check a text as the content of a file, of which only the name need exist."""
    path = Path(name)
    return replace(options, paths=(path,), only=(path.as_posix(),), overlay={path.as_posix(): text})


def fails(options: Options, report: CheckReport) -> bool:
    """Whether a report has a finding of the severity from which a check fails, by default warning."""
    least = options.fail_on or settings.load(options.paths[0])[0].fail_on or "warning"
    severities = _ORDER[: _ORDER.index(least) + 1] if least in _ORDER else ()
    return any(finding.severity in severities for finding in report.findings)


def _baseline(options: Options, project: settings.Settings, home: Path | None) -> Path | None:
    """The baseline that is read, if any."""
    if not options.read_baseline:
        return None
    return options.baseline or (home / project.baseline if project.baseline and home is not None else None)


def _new(
    found: list[Finding], known: Path | None, files: Iterable[str], codes: tuple[str, ...]
) -> tuple[tuple[Finding, ...], int, int]:
    """The findings that no baseline knows, the number of known ones, and of known ones that are gone."""
    return baseline.new(found, baseline.read(known, set(files), codes)) if known is not None else (tuple(found), 0, 0)


def _infos(options: Options, project: settings.Settings) -> bool:
    """Whether infos are shown; a check that fails on them shows them."""
    if "info" in (options.fail_on, "" if options.fail_on else project.fail_on):
        return True
    return project.show_info if options.show_info is None else options.show_info


def _stale(known: Path, gone: int) -> Diagnostic:
    what = "1 finding in it is" if gone == 1 else f"{gone} findings in it are"
    return Diagnostic(code="DX074", text=f"{known}: {what} gone; write it again: --write-baseline {known}")


def refuse_sessions(paths: Iterable[Path]) -> None:
    """Refuse to check sessions: their sources are evidence.

    Raises:
        UsageError: a path is a session, packed or not, or lies in one.
    """
    for path in paths:
        session = path if evidence.is_packed(path) else evidence.session_around(path)
        if session is not None:
            what = "is" if session in (path, path.resolve()) else f"lies in {session}, which is"
            raise UsageError(
                f"{path} {what} a session; its sources are evidence and are neither checked nor changed. Check the "
                f"program's own files, or see the findings of the session: stepscope report {session}"
            )


def _cached(job: work.FilesToCheck, options: Options) -> tuple[run.FileResult, ...]:
    """Results of all files: from the cache if neither the file nor its dependencies changed, else computed."""
    packages = tuple(path for path in job.files if path.endswith("__init__.py"))
    mark = cache.signature(job.roots, job.codes, job.target, packages)
    kept_in = cache.place(options.paths)
    entries = cache.load(kept_in, mark)
    now = cache.states(job.files, entries)
    stale = cache.stale(now, entries)
    if not stale and len(entries) == len(now):
        return tuple(entries[path].result for path in job.files)
    facts = {path: state.facts for path, state in now.items()}
    done = work.run(replace(job, todo=tuple(path for path in job.files if path in stale), facts=facts))
    entries = cache.updated(now, entries, done.results, done.looks)
    cache.save(kept_in, mark, entries)
    return tuple(entries[path].result for path in job.files)


def write_baseline(path: Path, options: Options) -> int:
    """Check files, and write all findings, also infos and those of an older baseline, as one; return their number.

    Raises:
        CheckError: as ``check``, or the file cannot be written.
    """
    return baseline.write(path, check(replace(options, show_info=True, read_baseline=False)).report.findings)


def encode(report: CheckReport) -> str:
    """A report as JSON text, schema ``stepscope.check/1``."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def select(wanted: Iterable[str], unwanted: Iterable[str]) -> tuple[Rule, ...]:
    """The rules whose codes start with one of ``wanted`` (empty: all) and with none of ``unwanted``.

    Raises:
        CheckError: no rule's code starts like that.
    """
    wanted, unwanted = tuple(w.upper() for w in wanted), tuple(u.upper() for u in unwanted)
    for word in (*wanted, *unwanted):
        if not any(rule.code.startswith(word) for rule in ALL):
            raise CheckError(f"no rule's code starts with {word!r}; list all: stepscope rule")
    chosen = (rule for rule in ALL if not wanted or rule.code.startswith(wanted))
    return tuple(rule for rule in chosen if not unwanted or not rule.code.startswith(unwanted))


def _roots(paths: Iterable[Path]) -> list[str]:
    return [path.as_posix() if path.is_dir() else path.parent.as_posix() for path in paths]


def _target(options: Options, project: settings.Settings) -> versions.Target:
    """The version from the first of: command line, settings, the project's pins, installed package, newest."""
    said = (("--target-version", options.target_version), ("pyproject.toml", project.target_version))
    for source, text in said:
        if text:
            version = versions.parse(text)
            if version is None:
                raise CheckError(f"{source}: {text!r} is not a TensorFlow version; expected something like 2.15")
            return versions.target(version, source)
    first = options.paths[0].resolve()
    folder = first if first.is_dir() else first.parent
    while True:
        pinned = pins.project_target(folder)
        if pinned is not None:
            return pinned
        if (folder / ".git").exists() or folder.parent == folder:
            return pins.installed_target() or versions.Target()
        folder = folder.parent


def _without(project: settings.Settings, home: Path | None, result: run.FileResult) -> run.FileResult:
    """A result without the findings that the settings ignore in that file."""
    if not project.per_file_ignores:
        return result
    path = Path(result.path).absolute()
    inside = path.relative_to(home) if home is not None and path.is_relative_to(home) else path
    codes = [
        code.upper()
        for pattern, codes in project.per_file_ignores.items()
        if fnmatch.fnmatch(inside.as_posix(), pattern) or fnmatch.fnmatch(inside.name, pattern)
        for code in codes
    ]
    kept = tuple(hit for hit in result.hits if not codes or not hit.code.startswith(tuple(codes)))
    return replace(result, hits=kept, ignored=result.ignored + len(result.hits) - len(kept))


def _findings(result: run.FileResult) -> list[Finding]:
    if not result.hits:
        return []
    by_code = {rule.code: rule for rule in ALL}
    return [findings.finding(by_code[hit.code], hit, result.cells) for hit in result.hits]


def _notes(result: run.FileResult, rules: Iterable[Rule]) -> list[Diagnostic]:
    """Notes for the reader: skipped files, failed rules, and ignore comments without effect."""
    notes = [Diagnostic(code="DX070", text=f"{result.path}: skipped: {result.skipped}")] if result.skipped else []
    notes += [Diagnostic(code="DX071", text=f"{result.path}: a rule failed: {failure}") for failure in result.failures]
    for cell in result.left_out:
        place = f"{result.path}:cell {cell.number}:{cell.line}"
        text = f"{place}: left out: not valid Python 3 ({cell.reason}); the other cells are checked"
        notes.append(Diagnostic(code="DX070", text=text))
    ran = {rule.code for rule in rules}
    for line, code in result.named:
        if code not in _CODES:
            text = f"{_spot(result, line)}: stepscope: ignore[{code}] names no rule; list all: stepscope rule"
            notes.append(Diagnostic(code="DX072", text=text))
    for ignore in result.unused:
        if set(ignore.codes) <= ran or not ignore.codes:
            text = f"{_spot(result, ignore.line)}: {ignore.text} has no effect; remove it"
            notes.append(Diagnostic(code="DX072", text=text))
    return notes


def _spot(result: run.FileResult, line: int) -> str:
    """A line of a file, in a notebook of its cell."""
    cell, inside = result.cells.at(line)
    return f"{result.path}:cell {cell}:{inside}" if cell else f"{result.path}:{line}"
