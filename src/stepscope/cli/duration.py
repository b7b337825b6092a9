"""A length of time on the command line: seconds, or a number with s, m or h."""

from __future__ import annotations

import math

import click

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def to_seconds(_ctx: click.Context, _param: click.Parameter, value: str) -> float:
    """The callback of an option: seconds, above 0.

    Raises:
        click.BadParameter: not such a time.
    """
    text = value.strip().lower()
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        seconds = float(number) * _UNITS[unit]
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise click.BadParameter(f"{value!r} is not a time; expected 90, 90s, 3m or 1h")
    return seconds
