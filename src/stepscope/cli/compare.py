"""``stepscope compare``: two sessions, or two groups of sessions, number by number."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from stepscope.tables.errors import UsageError
from stepscope.use_cases import compare as use_case

FORMATS = ("text", "json", "md")


@click.command(short_help="Compare two sessions or groups of sessions; fail if one is slower.")
@click.argument("sides", nargs=-1, type=click.Path(path_type=Path), metavar="[A B]")
@click.option(
    "--a",
    "before",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="SESSION",
    help="A session, folder or pattern of side A (before); repeatable, instead of A.",
)
@click.option(
    "--b",
    "after",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="SESSION",
    help="The same of side B (after).",
)
@click.option(
    "--fail-over",
    "limit",
    metavar="PERCENT",
    help="Exit with 1 if B takes more time than A by more than this (5%), with 3 if these runs cannot tell.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="text for people (default), json for programs (schema stepscope.compare/1), md for a pull request's comment. "
    "With -o, the file's extension decides.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of the terminal.")
def compare(
    sides: tuple[Path, ...],
    before: tuple[Path, ...],
    after: tuple[Path, ...],
    limit: str | None,
    format_: str | None,
    output: Path | None,
) -> int:
    """Compare two sides: A (before) and B (after).

    Each is a session, a packed session, a folder that holds sessions, or a pattern of names ('runs/base-*'). Sessions
    are only read. Give five or more runs a side: one run a side does not show how much runs differ.
    """
    limit_ratio = use_case.parse_limit(limit) if limit is not None else None
    one, other = _two(sides, before, after)
    report = use_case.compare(use_case.CompareOptions(before=one, after=other, limit_ratio=limit_ratio))
    form = format_ or _format_of(output)
    color = output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = shutil.get_terminal_size((120, 24)).columns if output is None else 0
    _write(use_case.render(report, form, color=color, width=width), output)
    return use_case.exit_code(report)


def _two(
    sides: tuple[Path, ...], before: tuple[Path, ...], after: tuple[Path, ...]
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The two sides, by position or by option."""
    if before and after and not sides:
        return before, after
    if len(sides) == len("AB") and not before and not after:
        return (sides[0],), (sides[1],)
    got = f"{len(sides)} paths, {len(before)} --a, {len(after)} --b"
    raise UsageError(f"{got}; expected two sides: A B, or --a SESSION ... --b SESSION ...")


def _write(data: str, output: Path | None) -> None:
    if output is None:
        click.echo(data, nl=False)
        return
    try:
        output.write_text(data, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from error


def _format_of(output: Path | None) -> str:
    ending = output.suffix.lstrip(".").lower() if output is not None else ""
    return {"markdown": "md"}.get(ending, ending if ending in FORMATS else "text")
