"""``stepscope check``: find slow code in the sources, without running them."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.tables.errors import CheckError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepscope.check.run.run import FileResult
    from stepscope.check.use_cases.check import Options
    from stepscope.tables.check_report import CheckReport
    from stepscope.tables.findings import Diagnostic

FOUND = 1
"""Exit code when something was found, as with other linters (docs/exit-codes.md)."""
NOT_ANALYSED = 3
"""Exit code of --fail-unanalysed: nothing was found, but not everything was looked at."""
CANNOT = 2
"""Exit code when files could not be written."""
SEVERITIES = ("error", "warning", "info", "never")
"""Values of --fail-on."""
FORMATS = ("text", "full", "concise", "json", "sarif", "github", "gitlab")


@click.command(short_help="Check sources for slow code.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--select", multiple=True, metavar="CODES", help="Run only rules whose code starts with one of CODES: TFD,KER001."
)
@click.option("--ignore", multiple=True, metavar="CODES", help="Skip rules whose code starts with one of CODES.")
@click.option(
    "--exclude", multiple=True, metavar="PATTERNS", help="Skip matching files and folders, also those that are named."
)
@click.option(
    "--stdin-filename", default="", metavar="PATH", help="With the path '-': the file whose content standard input is."
)
@click.option("--show-info", is_flag=True, help="Show infos too: what is worth knowing, or runs rarely.")
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    help="Exit with 1 for findings of this severity and above (default: warning). info implies --show-info.",
)
@click.option(
    "--target-version",
    default="",
    metavar="VERSION",
    help="TensorFlow version to check for, e.g. 2.15. Default: the version the project pins, else the installed one.",
)
@click.option("--fix", is_flag=True, help="Apply the safe fixes, which do not change results.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: include fixes that need review.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, without writing.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="text",
    help="text is for people: full (with source excerpts) on a terminal, concise (one line per finding) otherwise. "
    "Also json, sarif, github annotations and gitlab code quality.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of the terminal.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Report only findings that are not in this file.")
@click.option("--write-baseline", type=click.Path(path_type=Path), help="Write the current findings to this file.")
@click.option(
    "--fail-unanalysed",
    is_flag=True,
    help="Exit with 3 if nothing was found but no rule knows some of the files, e.g. those that use PyTorch alone.",
)
@click.option("--no-cache", is_flag=True, help="Check everything again and store nothing for the next run.")
def check(
    paths: tuple[Path, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    target_version: str,
    format_: str,
    output: Path | None,
    baseline: Path | None,
    write_baseline: Path | None,
    stdin_filename: str,
    fail_on: str | None,
    *,
    show_info: bool,
    fail_unanalysed: bool,
    no_cache: bool,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
) -> int:
    """Check Python files, notebooks and folders (default: the current one) for slow code, without running them.

    Exit code: 0 if no error or warning was found (or all were fixed), 1 if one was (--fail-on sets the severity), 2 if
    the check failed. With --diff: 1 if something would change. Files that no rule knows are named; with
    --fail-unanalysed the exit code is then 3 instead of 0. The path '-' is standard input.
    """
    from stepscope.check.use_cases import check as use_case

    options = use_case.Options(
        paths=paths or (Path(),),
        select=_words(select),
        ignore=_words(ignore),
        exclude=_words(exclude),
        target_version=target_version,
        baseline=baseline,
        cache=not no_cache,
        show_info=show_info or None,
        fail_on=fail_on or "",
    )
    if Path("-") in paths:
        if paths != (Path("-"),) or fix:
            raise UsageError("standard input ('-') is checked alone, and not fixed; --diff shows the changes")
        options = use_case.of_text(options, stdin_filename or "stdin.py", sys.stdin.buffer.read())
    with _uncollected():
        if write_baseline is not None:
            count = use_case.write_baseline(write_baseline, options)
            click.echo(f"{write_baseline}: {count} findings recorded as known", err=True)
            return 0
        if not (fix or diff):
            done = use_case.check(options)
            _show(done.report, format_, output, () if options.overlay else done.results)  # fixes are for files
            if use_case.fails(options, done.report):
                return FOUND
            return NOT_ANALYSED if fail_unanalysed and done.report.not_analysed else 0
        return _fix(options, format_, output, unsafe=unsafe_fixes, only_show=diff)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable garbage collection during the command, including the one at process exit that follows it.

    Measured: traversing and freeing the syntax trees of 73,000 lines takes 0.6 s of 3.3.
    """
    atexit.register(gc.freeze)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()  # everything is in the oldest generation now, so the next young collection skips it
        gc.enable()


def _fix(options: Options, format_: str, output: Path | None, *, unsafe: bool, only_show: bool) -> int:
    """Fix, or show what would be fixed; return the exit code."""
    from stepscope.check.use_cases import check as use_case
    from stepscope.check.use_cases import check_fix

    run = check_fix.fix(options, unsafe=unsafe)
    if only_show:
        _write("".join(check_fix.diff(change) for change in run.changes), output)
        _say(line for line in (*(f"would fix {d}" for d in run.done), *_notes(run.refused)))
        files = f"{len(run.changes)} file{'s' if len(run.changes) != 1 else ''}"
        _say([f"would fix {len(run.done)} in {files}" if run.done else "nothing would be fixed"])
        return FOUND if run.changes else 0
    failed = check_fix.write(run.changes)
    _say(f"fixed {line}" for line in run.done)
    _say(_notes(failed))
    report = check_fix.report(options, run)
    _show(report, format_, output)
    return CANNOT if failed else FOUND if use_case.fails(options, report) else 0


def _words(given: Iterable[str]) -> tuple[str, ...]:
    """The parts of repeated options, each of which may be a list with commas."""
    return tuple(word.strip() for text in given for word in text.split(",") if word.strip())


def _show(report: CheckReport, format_: str, output: Path | None, results: Iterable[FileResult] = ()) -> None:
    """Write the report in the requested format, with notes and summary on stderr."""
    from stepscope.check.use_cases import check_output

    if format_ in check_output.MACHINES:
        text = check_output.MACHINES[format_](report, results)
    else:
        terminal = output is None and sys.stdout.isatty()
        text = check_output.text(
            report,
            excerpts=format_ == "full" or (format_ == "text" and terminal),
            color=terminal and not os.environ.get("NO_COLOR"),
            width=shutil.get_terminal_size((120, 24)).columns,
        )
    _write(text, output)
    _say(_notes(report.diagnostics))
    _say([check_output.summary(report)])


def _notes(notes: Iterable[Diagnostic]) -> list[str]:
    return [f"{note.code} {note.text}" for note in notes]


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line, err=True)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CheckError(f"{output} cannot be written: {error.strerror}") from error
