"""``stepscope check``: what in the sources will be slow."""

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

from stepscope.errors import CheckError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stepscope.app.check import Options
    from stepscope.model.report.check import CheckReport
    from stepscope.model.report.finding import Diagnostic

FOUND = 1
"""Exit code when something was found, as linters have it (docs/exit-codes.md)."""
CANNOT = 2
"""Exit code when files could not be written."""
FORMATS = ("text", "full", "concise", "json", "sarif", "github", "gitlab")


@click.command(short_help="Check sources for what will be slow.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--select", multiple=True, metavar="CODE", help="Only rules whose code begins so; may be repeated.")
@click.option("--ignore", multiple=True, metavar="CODE", help="Not these rules; may be repeated.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave out files and folders; may be repeated.")
@click.option(
    "--target-version",
    default="",
    metavar="VERSION",
    help="TensorFlow to check for, e.g. 2.15. Default: what the project pins, else what is installed.",
)
@click.option("--fix", is_flag=True, help="Do the safe fixes, which change no results.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also those that somebody has to look at.")
@click.option("--diff", is_flag=True, help="Show what --fix would change, and write nothing.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="text",
    help="Text for people (on a terminal full, with the source; else concise, a line each), json, sarif, github "
    "annotations, or gitlab code quality.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of the terminal.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Report only what this file does not know.")
@click.option("--write-baseline", type=click.Path(path_type=Path), help="Write what is found now to this file.")
@click.option("--no-cache", is_flag=True, help="Check everything anew, and keep nothing for the next time.")
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
    *,
    no_cache: bool,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
) -> int:
    """Check Python files, notebooks and folders (default: this one) for what will cost time, without running them.

    Exits with 0 when nothing was found (or everything was fixed), with 1 when something was, with 2 when it could not
    check. With --diff: with 1 when something would change.
    """
    from stepscope.app import check as use_case  # noqa: PLC0415 - not for --help

    options = use_case.Options(
        paths=paths or (Path(),),
        select=select,
        ignore=ignore,
        exclude=exclude,
        target_version=target_version,
        baseline=baseline,
        cache=not no_cache,
    )
    with _uncollected():
        if write_baseline is not None:
            count = use_case.write_baseline(write_baseline, use_case.check(options).report)
            click.echo(f"{write_baseline}: {count} findings are known from now on", err=True)
            return 0
        if not (fix or diff):
            report = use_case.check(options).report
            _show(report, format_, output)
            return FOUND if report.findings else 0
        return _fix(options, format_, output, unsafe=unsafe_fixes, only_show=diff)


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection, nor of what is left when the process ends, which it does with this command.

    Measured: to walk the trees of 73,000 lines once more and take them apart is 0.6 s of 3.3.
    """
    atexit.register(gc.freeze)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()  # all is old now: the next collection, of what is young, does not walk it
        gc.enable()


def _fix(options: Options, format_: str, output: Path | None, *, unsafe: bool, only_show: bool) -> int:
    """Fix, or show what would be fixed; the exit code."""
    from stepscope.app import check_fix  # noqa: PLC0415 - not for --help

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
    return CANNOT if failed else FOUND if report.findings else 0


def _show(report: CheckReport, format_: str, output: Path | None) -> None:
    """The report in the format that was asked for, notes and summary on stderr."""
    from stepscope.app import check_output  # noqa: PLC0415 - not for --help

    if format_ in check_output.MACHINES:
        text = check_output.MACHINES[format_](report)
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
    if format_ not in check_output.MACHINES:
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
