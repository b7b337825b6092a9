"""``stepscope rule``: what a rule or detector looks for, why it matters and how to fix it."""

from __future__ import annotations

import difflib
import inspect
import re
import shutil
import sys
from typing import TYPE_CHECKING

import click

from stepscope.tables.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

NEAR = 3
"""Maximum number of suggestions for an unknown code."""


@click.command(short_help="Explain a finding's code.")
@click.argument("code", required=False)
def rule(code: str | None) -> None:
    """Explain the rule of `check` or the detector of `run` with this CODE or name. Without CODE: list all, with a line
    about each.
    """
    from stepscope.check.registry import ALL as RULES
    from stepscope.detectors.registry import EVERY as DETECTORS

    every = sorted([*((d.code, d.name, d.doc) for d in DETECTORS), *((r.code, r.name, r.doc) for r in RULES)])
    if code is None:
        width = shutil.get_terminal_size((10_000, 24)).columns if sys.stdout.isatty() else 0
        for one, name, doc in every:
            line = f"{one}  {name:<{max(len(name) for _, name, _ in every)}}  {summary(doc)}"
            click.echo(line if not width or len(line) <= width else f"{line[: width - 1]}\u2026")
        return
    wanted = code.lower()
    for one, name, doc in every:
        if wanted in (one.lower(), name.lower()):
            click.echo(page(one, name, doc, color=sys.stdout.isatty()), nl=False)
            return
    raise UsageError(unknown(code, [word for one, name, _ in every for word in (one, name)]))


def summary(doc: str) -> str:
    """The first sentence of a documentation."""
    return " ".join(inspect.cleandoc(doc).partition("\n\n")[0].split())


def page(code: str, name: str, doc: str, *, color: bool = False) -> str:
    """The documentation of a rule or detector for the terminal, without the heading marks."""
    text = f"# {code} {name}\n\n{inspect.cleandoc(doc)}\n"
    style = r"\1" if not color else "\x1b[1m\\1\x1b[0m"
    return re.sub(r"^#+ (.*)$", style, text, flags=re.MULTILINE)


def unknown(code: str, words: Iterable[str]) -> str:
    """One line that suggests known codes close to an unknown one."""
    by_lower = {word.lower(): word for word in words}
    near = [by_lower[w] for w in difflib.get_close_matches(code.lower(), by_lower, n=NEAR, cutoff=0.5)]
    known = f"did you mean {', '.join(near)}?" if near else "list all: stepscope rule"
    return f"no rule or detector is called {code!r}; {known}"
