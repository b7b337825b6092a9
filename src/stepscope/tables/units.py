"""Branded numbers and the only place that turns them into text.

Times are integer nanoseconds since the session's start on the host's monotonic clock; ratios are
0-1 floats; sizes are bytes.
"""

from __future__ import annotations

from typing import NewType

Ns = NewType("Ns", int)
"""Nanoseconds; a point in time (since session start) or a duration."""

Bytes = NewType("Bytes", int)
"""A size in bytes."""

Ratio = NewType("Ratio", float)
"""A share, 0 to 1."""

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
NS_PER_US = 1_000

_TIME_STEPS = ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "us"), (1, "ns"))
_SIZE_STEPS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
_ROUNDS_UP = 0.9995
"""Share of a unit from which three digits round up to it: 999.6 us is 1 ms."""
WHOLE_FROM = 0.0995
"""Share from which percent is written without a digit: 9.96 % is 10 %."""
_NO_DIGIT_FROM = 99.95
_ONE_DIGIT_FROM = 9.995
"""Rates from which three digits need no decimal, and one."""


def _in_units(value: float, steps: tuple[tuple[int, str], ...]) -> str:
    for step, unit in steps:
        if abs(value) >= _ROUNDS_UP * step:
            return _scaled(value / step, unit)
    return f"0 {steps[-1][1]}"


def _scaled(value: float, unit: str) -> str:
    size = abs(value)
    digits = 0 if size >= 100 or value == int(value) else 1 if size >= 10 else 2  # noqa: PLR2004 - three digits
    text = f"{value:.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text} {unit}"


def format_ns(value: float) -> str:
    """Duration with three significant digits: ``format_ns(78_900_000) == "78.9 ms"``."""
    return _in_units(value, _TIME_STEPS)


def format_bytes(value: float) -> str:
    """Size with three significant digits: ``format_bytes(3 << 20) == "3 MiB"``."""
    return _in_units(value, _SIZE_STEPS)


def format_ratio(value: float) -> str:
    """Share as percent: ``format_ratio(0.61) == "61 %"``, below ten percent with one digit."""
    digits = 0 if abs(value) >= WHOLE_FROM or value == 0 else 1
    return f"{100 * value:.{digits}f} %"


def format_rate(value: float) -> str:
    """Rate with three significant digits and a thousands separator: ``format_rate(1812.4) == "1,812"``."""
    digits = 0 if abs(value) >= _NO_DIGIT_FROM else 1 if abs(value) >= _ONE_DIGIT_FROM else 2
    return f"{value:,.{digits}f}"


def format_number_of(number: str, unit: str) -> str:
    """A written number before its unit: ``format_number_of("1", "CPUs") == "1 CPU"``."""
    return f"{number} {singular(unit) if number == '1' else unit}"


def format_times(rate: float, unit: str) -> str:
    """How often something happens in each: ``format_times(1, "step") == "once a step"``, ``"2.5 times a step"``."""
    times = f"{rate:.2g}"
    return f"once a {unit}" if times == "1" else f"{times} times a {unit}"


MIN_PLURAL = 3
"""Letters of a plural word: ``s`` and ``ns`` are units of time."""


def singular(unit: str) -> str:
    """``thread`` for ``threads``; a unit that is no plural word stays as it is."""
    if not unit.isalpha() or len(unit) < MIN_PLURAL or not unit.endswith("s"):
        return unit
    return unit[:-2] if unit.endswith(("ches", "sses")) else unit[:-1]
