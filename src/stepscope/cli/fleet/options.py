"""Options that the questions of ``stepscope fleet`` share."""

from __future__ import annotations

import functools
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli.key_file import CA_FILE, KEY_FILE
from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

_SORTS = ("wall", "cpu", "device", "money", "thread")
_AGO = re.compile(r"(\d{1,4})d")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DAY_S = 86_400
_FILTERS = (
    click.option("--user", default="", help="Only jobs of this user."),
    click.option("--team", default="", help="Only jobs of this team."),
    click.option("--project", default="", help="Only jobs of this project: the repository's folder."),
    click.option("--program", default="", help="Only jobs that run this script, '-m MODULE' or program."),
    click.option("--model", default="", help="Only jobs of this model."),
    click.option("--host", default="", help="Only jobs of this host."),
    click.option("--finding", default="", metavar="CODE", help="Only jobs that have this finding."),
    click.option("--since", default="", metavar="DAY", help="Only jobs that began on this day (UTC) or later, or 30d."),
    click.option("--until", default="", metavar="DAY", help="Only jobs that began on this day or earlier, or 7d."),
    KEY_FILE,
    CA_FILE,
)


def scoped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command URL and the filters, as its argument ``scope``."""

    @functools.wraps(command)
    def wrapped(
        *, url: str, since: str, until: str, key_file: Path | None, ca_file: Path | None, **others: object
    ) -> None:
        from stepscope.fleet.questions import FILTERS, Asked
        from stepscope.sessions.fleet.sending import Destination
        from stepscope.use_cases.fleet.asking import Scope

        filters = {name: str(value) for name in FILTERS if (value := others.pop(name))}
        scope = Scope(
            place=Destination(url=url, key_file=key_file, ca_file=ca_file),
            asked=Asked(filters=filters),
            since=_day(since, "--since"),
            until=_day(until, "--until"),
        )
        command(scope=scope, **others)

    decorated: Callable[..., None] = wrapped
    for option in reversed(_FILTERS):
        decorated = option(decorated)
    return click.argument("url", metavar="URL")(decorated)


FORM = click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="json for programs (schema stepscope.fleet/1).",
)
LIMIT = click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Most rows.")


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options of questions that are answered by a table."""
    for option in (
        FORM,
        LIMIT,
        click.option(
            "--prices",
            type=click.Path(path_type=Path, dir_okay=False),
            help="TOML file with prices of hours (docs/fleet.md): adds a column of money.",
        ),
        click.option(
            "--sort",
            type=click.Choice(_SORTS),
            help="Order. wall: time that the job took, or that a line or finding took of it; cpu: CPU time; device: "
            "wall time times GPUs; thread (of lines): time of all threads. Default: money with --prices, else wall.",
        ),
    ):
        command = option(command)
    return command


def _day(text: str, option: str) -> str:
    """An ISO day, as given or so many days ago; "" stays."""
    if found := _AGO.fullmatch(text):
        return time.strftime("%Y-%m-%d", time.gmtime(time.time() - int(found[1]) * _DAY_S))
    if text and not _DAY.fullmatch(text):
        raise UsageError(f"{option} {text}: no day; expected YYYY-MM-DD, or days ago such as 30d")
    return text
