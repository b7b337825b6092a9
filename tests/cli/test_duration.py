"""Lengths of time on the command line."""

from __future__ import annotations

import click
import pytest

from stepscope.cli.duration import to_seconds

CONTEXT = click.Context(click.Command("x"))
OPTION = click.Option(["--time"])


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("3m", 180), ("1h", 3600), (" 1.5M ", 90)])
def test_units(text: str, seconds: float) -> None:
    assert to_seconds(CONTEXT, OPTION, text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-3m", "0", "3d", "nan", "inf", "infm"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(click.BadParameter, match="expected 90, 90s, 3m or 1h"):
        to_seconds(CONTEXT, OPTION, text)
