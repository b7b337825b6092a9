"""``stepscope check``: what in the sources will be slow."""

from __future__ import annotations

from pathlib import Path

import click

FOUND = 1
"""Exit code when something was found, as linters have it (docs/exit-codes.md)."""


@click.command(short_help="Check sources for what will be slow.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--select", multiple=True, metavar="CODE", help="Only rules whose code begins with CODE; may be repeated."
)
@click.option("--ignore", multiple=True, metavar="CODE", help="Not these rules; may be repeated.")
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Leave out files and folders; may be repeated.")
@click.option("--target-version", default="", metavar="VERSION", help="TensorFlow to check for, e.g. 2.15.")
def check(
    paths: tuple[Path, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exclude: tuple[str, ...],
    target_version: str,
) -> int:
    """Check Python files, notebooks and folders (default: this one) for what will cost time, without running them.

    Exits with 0 when nothing was found, with 1 when something was.
    """
    from stepscope.app import check as use_case  # noqa: PLC0415 - not for --help

    options = use_case.Options(
        paths=paths or (Path(),), select=select, ignore=ignore, exclude=exclude, target_version=target_version
    )
    done = use_case.check(options)
    for finding in done.findings:
        place = finding.where[0]
        cell = f":cell {place.cell}" if place.cell else ""
        click.echo(f"{place.file}{cell}:{place.line}:{place.column}: {finding.code} {finding.title}")
    for note in done.diagnostics:
        click.echo(f"{note.code} {note.text}", err=True)
    return FOUND if done.findings else 0
