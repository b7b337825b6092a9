"""``stepscope check``: what in the sources will be slow."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stepscope.model.check import CheckReport

FOUND = 1
"""Exit code when something was found, as linters have it (docs/exit-codes.md)."""
FORMATS = ("text", "json")


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
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="Text for people, or json.")
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
    baseline: Path | None,
    write_baseline: Path | None,
    *,
    no_cache: bool,
) -> int:
    """Check Python files, notebooks and folders (default: this one) for what will cost time, without running them.

    Exits with 0 when nothing was found, with 1 when something was, with 2 when it could not check.
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
    report = use_case.check(options).report
    if write_baseline is not None:
        count = use_case.write_baseline(write_baseline, report)
        click.echo(f"{write_baseline}: {count} findings are known from now on", err=True)
        return 0
    if format_ == "json":
        click.echo(use_case.encode(report))
    else:
        _print(report)
    return FOUND if report.findings else 0


def _print(report: CheckReport) -> None:
    """A line for each finding, in the form that editors know, and a summary."""
    for finding in report.findings:
        place = finding.where[0]
        cell = f":cell {place.cell}" if place.cell else ""
        code = click.style(finding.code, fg={"error": "red", "warning": "yellow"}.get(finding.severity), bold=True)
        click.echo(f"{place.file}{cell}:{place.line}:{place.column}: {code} {finding.title}")
    for note in report.diagnostics:
        click.echo(f"{note.code} {note.text}", err=True)
    if sys.stderr.isatty() or not report.findings:
        click.echo(_summary(report), err=True)


def _summary(report: CheckReport) -> str:
    counts = Counter(finding.severity for finding in report.findings)
    found = ", ".join(f"{counts[word]} {word}" for word in ("error", "warning", "info") if counts[word])
    hidden = "".join(f", {n} {word}" for n, word in ((report.ignored, "ignored"), (report.known, "known")) if n)
    checked = f"checked {report.files} files for TensorFlow {report.target.tensorflow} ({report.target.source})"
    return f"{checked}: {found or 'nothing found'}{hidden}"
