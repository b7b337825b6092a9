"""``stepscope flame``: flame graphs of sessions and stack files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from stepscope.tables.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from stepscope.report.flame.graph import ComparedProfiles, Graph

_WHAT = click.argument("what", type=click.Path(path_type=Path), metavar="SESSION|FILE")
_EVENT = click.option(
    "--event",
    default="",
    help="The sampled event: python, off-cpu, cpu, page-faults ... Default: CPU time, else python. For a file that "
    "does not name its event: the name to show.",
)
_OUTPUT = click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Write this file, in the format of its extension: .html (zoom, search, threads, time), .svg, .folded, "
    ".speedscope.json, .pb.gz (pprof). Repeatable. Default: text on the terminal.",
)
_WINDOW = click.option(
    "--window",
    type=click.Choice(("steady", "all")),
    help="Part of a session to use: its steady steps (default if it has any), or all of it, start and end included.",
)


class _Flame(click.Group):
    """``flame SESSION`` is ``flame show SESSION``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert ``show`` if no command is named."""
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Flame, short_help="Draw flame graphs; compare two beyond noise.", no_args_is_help=True)
def flame() -> None:
    """Draw the sampled stacks of a session, or of a perf record, perf script, folded-stack, pprof or speedscope file.

    `stepscope flame SESSION|FILE` is short for `stepscope flame show SESSION|FILE`.
    """


@flame.command(short_help="Draw one profile (the default; the word may be omitted).")
@_WHAT
@_EVENT
@_WINDOW
@_OUTPUT
def show(what: Path, event: str, window: Literal["steady", "all"] | None, outputs: tuple[Path, ...]) -> None:
    """Draw the stacks of SESSION or FILE."""
    _draw(lambda app: app.choose(what, event=event, window=window).graph, outputs, difference=False)


@flame.command(short_help="Show differences between two profiles that exceed noise.")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@_EVENT
@_WINDOW
@click.option(
    "--by",
    "basis",
    type=click.Choice(("work", "share")),
    default="work",
    show_default=True,
    help="work: both cover the same work (sessions are scaled to the same number of steps). share: compare only "
    "proportions.",
)
@click.option(
    "--work",
    type=(click.FloatRange(min=0, min_open=True), click.FloatRange(min=0, min_open=True)),
    help="Amount of work in each, if it differs: requests, steps, runs.",
)
@_OUTPUT
def diff(
    before: Path,
    after: Path,
    event: str,
    window: Literal["steady", "all"] | None,
    basis: Literal["work", "share"],
    work: tuple[float, float] | None,
    outputs: tuple[Path, ...],
) -> None:
    """Compare two sessions or files, and separate differences that exceed sampling noise from those that do not."""
    _draw(
        lambda app: app.compare(before, after, event=event, window=window, basis=basis, work=work),
        outputs,
        difference=True,
    )


def _draw(
    read: Callable[[ModuleType], Graph | ComparedProfiles], outputs: tuple[Path, ...], *, difference: bool
) -> None:
    """Read the profiles through the use cases, then print or write the result."""
    from stepscope.use_cases import flame as app

    for path in outputs:
        app.check_ending(path, difference=difference)
    shown = read(app)
    if not outputs:
        click.echo(app.text_of(shown), nl=False)
    for path in outputs:
        click.echo(f"{path}  {format_bytes(app.write(shown, path))}")
